export { adversarialSchedulers } from './adversarial.js';
export { delayingScheduler } from './delaying.js';
export { inOrderScheduler } from './in-order.js';
export { randomScheduler } from './random.js';
export { recordingScheduler, replayingScheduler } from './replay.js';
export { timedScheduler } from './timed.js';
