import { createInterface } from 'node:readline/promises';
import { wrapText } from '../../report/layout/index.js';

/** A starting point of a newcomer, and the commands for it. */
interface FirstStep {
  /** The word that selects it. */
  readonly name: string;
  readonly what: string;
  /** The commands, each with its effect. */
  readonly commands: readonly (readonly [command: string, does: string])[];
  /** Prerequisites, or other useful facts. */
  readonly note: string;
}

/** The choices, in the order in which they are offered. */
export const firstSteps: readonly FirstStep[] = [
  {
    name: 'dump',
    what: 'a dump: a file with q, k, v and what a kernel made of them',
    commands: [
      ['flashproof audit dump.safetensors', 'is its output right, and if not, why?'],
      ['flashproof audit dump.safetensors --html report.html', 'the same with plots'],
    ],
    note: 'An .npz or a folder of .npy does as well. Tensors are named q, k, v, out and lse; --output file:tensor names another.',
  },
  {
    name: 'kernel',
    what: 'a kernel that can be run: Python, CUDA, anything with a command',
    commands: [
      ['flashproof audit problem.safetensors --exec "python3 kernel.py"', 'run it on one problem'],
      ['flashproof check --exec "python3 kernel.py" --runs 5', 'try 51 laws on random problems'],
    ],
    note: 'The command reads one JSON object a line and answers with one; examples/python has a whole one.',
  },
  {
    name: 'ptx',
    what: 'compiled PTX, with or without a GPU',
    commands: [
      ['flashproof run launch.json', 'execute it on the emulated machine, and look for races'],
      ['flashproof check --launch launch.json --runs 5', 'try the laws on it'],
    ],
    note: 'A launch file says grid, block and parameters; examples/triton and examples/flash-attention-4 record them.',
  },
  {
    name: 'nothing',
    what: 'nothing yet: show me',
    commands: [
      ['flashproof check --kernel fa4 --runs 1', 'an emulated FlashAttention-4 keeps every law'],
      [
        'flashproof check --kernel fa4 --variant causal-one-more --runs 5',
        'with a mask that is one key off it does not',
      ],
    ],
    note: 'flashproof emulate list names the emulated kernels and the bugs that they can be given.',
  },
];

/** The commands of a choice as lines, newline at the end. */
function renderStep({ commands, note }: FirstStep): string {
  const lines = commands.flatMap(([command, does]) => [`  ${command}`, `      ${does}`]);
  return `${[...lines, '', note].join('\n')}\n`;
}

/** All choices with their commands, for a session without a terminal. */
export function renderSteps(): string {
  const steps = firstSteps.map((step) => `You have ${step.what}\n${renderStep(step)}`);
  const rest =
    'flashproof doctor says what of this machine is usable; flashproof --help has all commands.';
  return `${steps.join('\n')}\n${rest}\n`;
}

/**
 * The choice that an answer names by its number, its word or a prefix of that; null for an unknown answer.
 */
export function stepOf(answer: string): FirstStep | null {
  const text = answer.trim().toLowerCase();
  if (text === '') return null;
  return firstSteps.find(({ name }, i) => text === String(i + 1) || name.startsWith(text)) ?? null;
}

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
