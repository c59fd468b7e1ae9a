export {
  checkRecurrence,
  type RecurrentCheckCallbacks,
  type RecurrentCheckRequest,
} from './check-recurrence.js';
export {
  chooseRecurrentModel,
  emulatedRecurrence,
  type ChosenRecurrentModel,
} from './emulated-recurrence.js';
export { liveRecurrence } from './live-recurrence.js';
export type { RecurrenceUnderTest, RecurrentExecutionFailure } from './recurrence-under-test.js';
