import { notStarted, type LiveAnswer, type LiveFailure } from '../../io/live/index.js';
import { KernelAbsent, KernelFault, UnsupportedProblem } from '../../../properties/index.js';

/** Default name of a live kernel. */
export const liveSubject = "the kernel's process";

/** The most starts of a command that ends before its first answer. */
const mostStarts = 3;

/** Causes that prove that the command runs, whatever it makes of the problem. */
const answers: readonly LiveFailure['cause'][] = ['error', 'unsupported', 'output'];

/** Advice to the user about a process that does not work at all. */
const mends: Readonly<Partial<Record<LiveFailure['cause'], string>>> = {
  timeout: '; --timeout <seconds> gives it longer',
  protocol: '; its stdout is for answers only, all else belongs on stderr',
  ended: ` before its first answer, ${mostStarts} times in a row`,
};

/**
 * The outputs of an answer.
 * @throws KernelAbsent, UnsupportedProblem or KernelFault for a failure
 */
export function outputsOf<Outputs>(
  answer: LiveAnswer<Outputs>,
  { command, subject = liveSubject }: { readonly command: string; readonly subject?: string },
): Outputs {
  if (answer.ok) return answer.outputs;
  const statement = `${subject} ${answer.reason}`;
  if (answer.cause === 'not-started') throw new KernelAbsent(notStarted(command, answer));
  if (answer.cause === 'unsupported') throw new UnsupportedProblem(statement);
  throw new KernelFault(statement, { isSlow: answer.cause === 'timeout' });
}

/**
 * The failure to answer a first request, which is repeated a few times; null once there is an answer.
 * @throws KernelAbsent for a command that cannot be run
 */
export async function firstFailure(
  ask: () => Promise<LiveAnswer<unknown>>,
  command: string,
): Promise<LiveFailure | null> {
  for (let start = 1; ; start++) {
    const answer = await ask();
    if (answer.ok || answers.includes(answer.cause)) return null;
    if (answer.cause === 'not-started') throw new KernelAbsent(notStarted(command, answer));
    if (answer.cause !== 'ended' || start === mostStarts) return answer;
  }
}

/** A first failure in a sentence without its full stop, with advice and the problem that was asked for. */
export function describeFirstFailure(
  subject: string,
  { reason, cause }: LiveFailure,
  asked: string,
): string {
  return `${subject} ${reason}${mends[cause] ?? ''} (asked for ${asked})`;
}
