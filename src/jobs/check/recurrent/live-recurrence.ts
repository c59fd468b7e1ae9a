import { ordinaryRecurrence } from '../../../../properties/index.js';
import type { LiveRecurrence } from '../../../io/live/index.js';
import { recurrentShape } from '../../../problem/index.js';
import { describeReportedRecurrence, reportedRecurrence } from '../../../report/json/index.js';
import { describeFirstFailure, firstFailure, liveSubject, outputsOf } from '../live-answers.js';
import type { RecurrenceUnderTest } from './recurrence-under-test.js';

/** A live kernel of linear attention to try; closing the result closes it. */
export function liveRecurrence(live: LiveRecurrence, command: string): RecurrenceUnderTest {
  return {
    kernel: async (problem, gradients) =>
      outputsOf(await live.run({ problem, gradients }), { command }).results,
    promises: {},
    reported: { command, model: null, settings: {}, judgedAs: null },
    elsewhere: null,
    whyNotRunning: async (promises) => {
      const posed = ordinaryRecurrence(promises);
      const failure = await firstFailure(() => live.run(posed), command);
      if (failure === null) return null;
      const asked = describeReportedRecurrence(
        reportedRecurrence(posed.problem, { shape: recurrentShape(posed.problem) }),
      );
      return { reason: describeFirstFailure(liveSubject, failure, asked), posed };
    },
    close: live.close,
  };
}
