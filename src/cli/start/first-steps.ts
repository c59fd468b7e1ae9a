/** A starting point of a newcomer, and the commands for it. */
export interface FirstStep {
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
export function renderStep({ commands, note }: FirstStep): string {
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
