import { startLiveRecurrence } from '../../../io/live/index.js';
import type { RecurrentSource } from '../../audit/index.js';
import { executeOnce } from '../execute-once.js';
import { madeSources } from '../made-source.js';

/** A kernel of linear attention that is a process, run by its command over the process protocol. */
export function liveRecurrenceSource(command: string, timeoutSeconds: number): RecurrentSource {
  return {
    command: () => command,
    takes: async () => [],
    run: async ({ file, problem, gradientInputs: gradients }) => {
      const asked = { problem, gradients };
      const answer = await executeOnce(
        command,
        () => startLiveRecurrence(command, timeoutSeconds),
        asked,
        file.path,
      );
      if ('failure' in answer) return answer;
      const { results, unasked } = answer.outputs;
      return { results, unasked, declared: null, sources: madeSources(results) };
    },
  };
}
