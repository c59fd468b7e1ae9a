export { lazily } from './lazily.js';
export { WorkingMemories } from './working-memories.js';
