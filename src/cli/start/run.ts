import { createInterface } from 'node:readline/promises';
import { wrapText } from '../../report/layout/index.js';
import { firstSteps, renderStep, renderSteps, stepOf } from './first-steps.js';

/** The streams of the dialogue with a newcomer. */
interface Conversation {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

const columns = 80;

function wrapped(text: string): string {
  return text
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [line] : wrapText(line, columns)))
    .join('\n');
}

/**
 * Runs `flashproof` without a command: on a terminal asks for the starting point and shows the command for it,
 * elsewhere shows all of them. Returns the exit status: 2 if nobody could be asked, since a script that lost its
 * command must not pass.
 */
export async function runStart(
  { input, output }: Conversation = { input: process.stdin, output: process.stdout },
): Promise<number> {
  if (input.isTTY !== true || output.isTTY !== true) {
    output.write(wrapped(renderSteps()));
    return 2;
  }
  const questions = firstSteps.map(({ name, what }, i) => `  ${i + 1}  ${name.padEnd(8)} ${what}`);
  output.write(`What do you have?\n\n${questions.join('\n')}\n\n`);
  const terminal = createInterface({ input, output });
  try {
    for (;;) {
      // The end of the input, by Ctrl-D or Ctrl-C, is no answer.
      const answer = await Promise.race([
        terminal.question(`1 to ${firstSteps.length}, or q to leave: `),
        new Promise<null>((resolve) => terminal.once('close', () => resolve(null))),
      ]);
      if (answer === null || /^q(uit)?$/i.test(answer.trim())) return 0;
      const step = stepOf(answer);
      if (step === null) continue;
      output.write(`\n${wrapped(renderStep(step))}`);
      return 0;
    }
  } finally {
    terminal.close();
  }
}
