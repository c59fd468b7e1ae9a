import { decodeTensor } from '../../../formats/index.js';
import { normFormats, type RootMeanSquareNorm } from '../../../problem/index.js';
import { fault, mapped, withNorm, type Change, type PrologueFault } from './prologue-fault.js';
import { rotaryFaults } from './rotary-faults.js';

/** The gain of each head, moved by one head. */
function movedGain(by: number): Change {
  return withNorm((norm, { input }) => {
    const { gain } = norm;
    if (gain === null || gain.shape.length !== 2 || input.shape[1] < 2) return null;
    const [heads, columns] = gain.shape;
    const values = decodeTensor(gain);
    const from = (i: number) => (i + by * columns + heads * columns) % (heads * columns);
    return { ...norm, gain: mapped(gain, (_, i) => values[from(i)]) };
  });
}

function withForm(form: NonNullable<RootMeanSquareNorm['form']>): Change {
  return withNorm((norm) => ({ ...norm, form }));
}

const normFaults: readonly PrologueFault[] = [
  ...[0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3].map((epsilon) =>
    fault(
      'norm-epsilon',
      `the norm takes ${epsilon} as epsilon`,
      withNorm((norm) => (norm.epsilon === epsilon ? null : { ...norm, epsilon })),
    ),
  ),
  fault(
    'norm-epsilon-outside',
    'epsilon is added to the root and not under it',
    withForm('epsilon-outside'),
  ),
  fault(
    'norm-missing',
    'the norm is missing',
    withNorm(() => 'none'),
  ),
  fault(
    'gain-missing',
    'the gain of the norm is missing',
    withNorm((norm) => (norm.gain === null ? null : { ...norm, gain: null, offset: 0 })),
  ),
  fault(
    'gain-offset',
    'the norm multiplies by the gain where it is 1 + gain, or the reverse',
    withNorm((norm) =>
      norm.gain === null ? null : { ...norm, offset: norm.offset === 1 ? 0 : 1 },
    ),
  ),
  fault('gain-of-other-head', 'the gain is of the head before', movedGain(-1)),
  fault('gain-of-other-head', 'the gain is of the head behind', movedGain(1)),
  fault(
    'gain-of-other-tensor',
    'the gain is that of the other of q and k',
    withNorm((norm, { name }, all) => {
      const other = all.find((one) => one.name !== name && one.prologue?.norm?.gain);
      const gain = other?.prologue?.norm?.gain ?? null;
      return gain === null || String(gain.shape) !== String(norm.gain?.shape)
        ? null
        : { ...norm, gain };
    }),
  ),
  fault(
    'norm-sum',
    'the norm divides by the root of the sum of squares and not of their mean',
    withForm('sum'),
  ),
  fault('norm-over-heads', 'the norm is over all heads of a token', withForm('token')),
  fault('norm-centred', 'the norm subtracts the mean, as a layer norm does', withForm('centred')),
  ...normFormats.map((format) =>
    fault(
      'norm-rounded',
      `normed numbers are rounded to ${format} before anything else`,
      withNorm((norm) => (norm.format === format ? null : { ...norm, format })),
    ),
  ),
  fault(
    'norm-unrounded',
    'normed numbers are not rounded where they have to be',
    withNorm(({ format, ...norm }) => (format === undefined ? null : norm)),
  ),
  fault(
    'norm-order',
    'the norm is made behind the rotation where it is before it, or the reverse',
    ({ prologue }) =>
      prologue === null || prologue.norm === null || prologue.rotary === null
        ? null
        : { ...prologue, order: prologue.order === 'rope-norm' ? 'norm-rope' : 'rope-norm' },
  ),
];

function withFactor(change: (factor: number) => number | null): Change {
  return ({ prologue }) => {
    const factor = prologue === null ? null : change(prologue.factor ?? 1);
    return prologue === null || factor === null ? null : { ...prologue, factor };
  };
}

const ifScaled = (change: (factor: number) => number) => (factor: number) =>
  factor === 1 ? null : change(factor);

const factorFaults: readonly PrologueFault[] = [
  fault('scale-missing', 'the softmax scale is missing', withFactor(ifScaled(() => 1))),
  fault('scale-twice', 'the softmax scale is applied twice', withFactor(ifScaled((x) => x * x))),
  fault('scale-root', 'the softmax scale is applied as its root', withFactor(ifScaled(Math.sqrt))),
  fault('scale-inverse', 'the softmax scale is divided by', withFactor(ifScaled((x) => 1 / x))),
  fault(
    'scale-log2e',
    'the softmax scale is multiplied by log2 e',
    withFactor(ifScaled((x) => x * Math.LOG2E)),
  ),
  fault(
    'scale-of-other-tensor',
    'the softmax scale is applied to a tensor that has none',
    ({ prologue }, all) => {
      const factor = all.find((one) => (one.prologue?.factor ?? 1) !== 1)?.prologue?.factor;
      return prologue === null || (prologue.factor ?? 1) !== 1 || factor === undefined
        ? null
        : { ...prologue, factor };
    },
  ),
];

/** Faults of a tensor that a prologue leaves as it is, of what it does to another: values that are rotated or normed. */
const untouchedFaults: readonly PrologueFault[] = (
  [
    ['rope-on-values', 'values are rotated as keys are', { norm: null }],
    ['norm-on-values', 'values are normed as keys are', { rotary: null }],
    ['prologue-on-values', 'values are normed and rotated as keys are', {}],
  ] as const
).map(([id, sentence, without]) =>
  fault(id, sentence, (part, all) => {
    const keys = all.find(({ name }) => name === 'k')?.prologue;
    if (part.prologue !== null || !keys) return null;
    const made = { ...keys, ...without, factor: 1 };
    return made.norm === null && made.rotary === null ? null : made;
  }),
);

/** Prologues whose norm, rotation or factor is wrong. */
export const prologueFaults: readonly PrologueFault[] = [
  ...rotaryFaults,
  // A norm by the sum of squares is a second scale of 1 / √columns, and scales are the usual fault.
  ...factorFaults,
  ...normFaults,
  ...untouchedFaults,
];
