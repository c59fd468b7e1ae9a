import type { ExperimentRequest } from '../../../src/browser/index.js';

/** A knob of the laboratory: a slider, or a choice. */
export type Knob = {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  /** The value where the address has none. */
  readonly initial: string;
} & (
  | { readonly low: number; readonly high: number; readonly step: number }
  | { readonly choices: readonly string[] }
);

/** All knobs. The values of FlashAttention-4 are the initial ones. */
export const knobs: readonly Knob[] = [
  {
    name: 'degree',
    label: 'Degree of the polynomial',
    hint: 'of 2^x by hand',
    initial: '3',
    low: 1,
    high: 5,
    step: 1,
  },
  {
    name: 'share',
    label: 'Columns by hand, of 16',
    hint: 'the others by the MUFU',
    initial: '4',
    low: 0,
    high: 16,
    step: 1,
  },
  {
    name: 'threshold',
    label: 'Rescale threshold',
    hint: 'octaves that the maximum may grow unseen',
    initial: '8',
    low: 0,
    high: 16,
    step: 0.5,
  },
  {
    name: 'spread',
    label: 'Spread of the scores',
    hint: 'their standard deviation',
    initial: '1',
    low: 0.1,
    high: 12,
    step: 0.1,
  },
  {
    name: 'format',
    label: 'Inputs',
    hint: 'Q, K, V',
    initial: 'bf16',
    choices: ['bf16', 'fp16', 'e4m3'],
  },
  { name: 'output', label: 'Output', hint: '', initial: 'bf16', choices: ['bf16', 'fp16'] },
  {
    name: 'seed',
    label: 'Problem',
    hint: 'the seed of 256 queries × 512 keys, dim 64',
    initial: '1',
    low: 1,
    high: 50,
    step: 1,
  },
];

/** The value of each knob, by name. */
export type KnobValues = Readonly<Record<string, string>>;

/** Whether a knob can stand so. */
function isPossible(knob: Knob, value: string): boolean {
  if ('choices' in knob) return knob.choices.includes(value);
  const number = Number(value);
  return value.trim() !== '' && number >= knob.low && number <= knob.high;
}

/** The knobs of an address; what it lacks, and what no knob can be, is as it is initially. */
export function valuesOf(address: string): KnobValues {
  const given = new URLSearchParams(address.replace(/^#/, ''));
  return Object.fromEntries(
    knobs.map((knob) => {
      const value = given.get(knob.name) ?? knob.initial;
      return [knob.name, isPossible(knob, value) ? value : knob.initial];
    }),
  );
}

/** The address of the knobs: those that do not stand as they do initially. */
export function addressOf(values: KnobValues): string {
  const moved = knobs.filter(({ name, initial }) => values[name] !== initial);
  return `#${new URLSearchParams(moved.map(({ name }): [string, string] => [name, values[name]])).toString()}`;
}

/** The experiment of the knobs. */
export function requestOf(values: KnobValues): ExperimentRequest {
  const byHand = Number(values['share']);
  return {
    format: values['format'] as ExperimentRequest['format'],
    queries: 256,
    keys: 512,
    dim: 64,
    spread: Number(values['spread']),
    seed: Number(values['seed']),
    settings: {
      'exp2.degree': values['degree'],
      // A period of 16 columns, of which the last ones are computed by hand, from the first fragment on.
      'exp2.frequency': byHand === 0 ? '0' : '16',
      ...(byHand === 0 ? {} : { 'exp2.reserve': String(byHand) }),
      'exp2.startFragment': '0',
      'rescale.threshold': values['threshold'],
      'out.format': values['output'],
    },
  };
}
