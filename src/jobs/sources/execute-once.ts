import { notStarted, type LiveProcess } from '../../io/live/index.js';
import type { NoOutput } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';

/**
 * Runs a kernel's command on one problem over the process protocol. The process and its folder are gone
 * once it has answered: judging may take minutes, and an interrupt would leave the folder behind.
 * @param path of the problem's file, for replay
 * @throws RequestError for a command that cannot be started, and when there can be no temporary folder
 */
export async function executeOnce<Asked, Outputs>(
  command: string,
  start: () => Promise<Pick<LiveProcess<Asked, Outputs>, 'run' | 'close'>>,
  asked: Asked,
  path: string,
): Promise<{ readonly outputs: Outputs } | { readonly failure: NoOutput }> {
  const kernel = await start();
  try {
    const answer = await kernel.run(asked);
    if (answer.ok) return { outputs: answer.outputs };
    if (answer.cause === 'not-started') throw new RequestError(notStarted(command, answer));
    const reason = `the kernel's process ${answer.reason}; replay with the problem ${path}`;
    return { failure: { reason, isDeclined: answer.cause === 'unsupported' } };
  } finally {
    await kernel.close();
  }
}
