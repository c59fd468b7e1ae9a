export {
  checkRecurrence,
  type RecurrentCheckCallbacks,
  type RecurrentCheckRequest,
} from './check-recurrence.js';
export { emulatedRecurrence } from './emulated-recurrence.js';
export { liveRecurrence } from './live-recurrence.js';
export type { RecurrenceUnderTest, RecurrentExecutionFailure } from './recurrence-under-test.js';
