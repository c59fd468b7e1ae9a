import {
  cachePartShape,
  type CachePart,
  type Prologue,
  type RootMeanSquareNorm,
  type Rotary,
} from '../../../../problem/index.js';
import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../../formats/index.js';
import { supposedPart, type SupposedPart, type Supposition } from '../supposition.js';
import { withParts, type WriteFault } from './write-fault.js';

/** A prologue with a fault; null where a part's own cannot have it. */
interface PrologueFault {
  readonly id: string;
  readonly sentence: string;
  readonly change: (part: CachePart) => Prologue | null;
}

function withRotary(change: (rotary: Rotary) => Rotary | null): PrologueFault['change'] {
  return ({ prologue }) =>
    prologue === null || prologue.rotary === null
      ? null
      : { ...prologue, rotary: change(prologue.rotary) };
}

function withNorm(
  change: (norm: RootMeanSquareNorm, heads: number) => RootMeanSquareNorm | null | 'none',
): PrologueFault['change'] {
  return (part) => {
    const { prologue } = part;
    if (prologue === null || prologue.norm === null) return null;
    const norm = change(prologue.norm, cachePartShape(part).heads);
    if (norm === null) return null;
    return { ...prologue, norm: norm === 'none' ? null : norm };
  };
}

/** Positions moved, as far as the tables have a row for them. */
function moved({ tables, positions, layout }: Rotary, by: number): Rotary {
  const last = tables.cos.shape[0] - 1;
  return { tables, layout, positions: positions.map((x) => Math.min(last, Math.max(0, x + by))) };
}

function backwards({ tables, positions, layout }: Rotary): Rotary {
  const { sin } = tables;
  const data = encodeFromFloat64(
    formats[sin.format],
    decodeTensor(sin).map((x) => -x),
  );
  return { tables: { cos: tables.cos, sin: { ...sin, data } }, positions, layout };
}

const rotaryFaults: readonly PrologueFault[] = [
  {
    id: 'rope-interleaved',
    sentence: 'the rotation pairs neighbouring elements where it pairs halves, or the reverse',
    change: withRotary((rotary) => ({
      ...rotary,
      layout: rotary.layout === 'halves' ? 'neighbours' : 'halves',
    })),
  },
  {
    id: 'rope-position',
    sentence: 'the rotation takes the position behind',
    change: withRotary((rotary) => moved(rotary, 1)),
  },
  {
    id: 'rope-position',
    sentence: 'the rotation takes the position before',
    change: withRotary((rotary) => moved(rotary, -1)),
  },
  {
    id: 'rope-position',
    sentence: 'the rotation takes the position of the token before in the batch',
    change: withRotary((rotary) => ({
      ...rotary,
      positions: rotary.positions.map((_, i, all) => all[Math.max(0, i - 1)]),
    })),
  },
  {
    id: 'rope-position',
    sentence: 'the rotation takes the number of the token in the batch as its position',
    change: withRotary((rotary) => ({
      ...rotary,
      positions: rotary.positions.map((_, i) => Math.min(i, rotary.tables.cos.shape[0] - 1)),
    })),
  },
  {
    id: 'rope-missing',
    sentence: 'the rotation is missing',
    change: withRotary(() => null),
  },
  {
    id: 'rope-backwards',
    sentence: 'the rotation turns backwards',
    change: withRotary(backwards),
  },
];

/** The gain of each head, moved by one head. */
function movedGain(gain: Tensor, by: number): Tensor {
  const [heads, columns] = gain.shape;
  const values = decodeTensor(gain);
  const from = (i: number) => (i + by * columns + heads * columns) % (heads * columns);
  const data = encodeFromFloat64(
    formats[gain.format],
    values.map((_, i) => values[from(i)]),
  );
  return { ...gain, data };
}

function withMovedGain(by: number): PrologueFault['change'] {
  return withNorm((norm, heads) =>
    norm.gain === null || norm.gain.shape.length !== 2 || heads < 2
      ? null
      : { ...norm, gain: movedGain(norm.gain, by) },
  );
}

const normFaults: readonly PrologueFault[] = [
  ...[0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3].map((epsilon): PrologueFault => ({
    id: 'norm-epsilon',
    sentence: `the norm takes ${epsilon} as epsilon`,
    change: withNorm((norm) => (norm.epsilon === epsilon ? null : { ...norm, epsilon })),
  })),
  {
    id: 'norm-missing',
    sentence: 'the norm is missing',
    change: withNorm(() => 'none'),
  },
  {
    id: 'gain-missing',
    sentence: 'the gain of the norm is missing',
    change: withNorm((norm) => (norm.gain === null ? null : { ...norm, gain: null })),
  },
  {
    id: 'gain-offset',
    sentence: 'the norm multiplies by the gain where it is 1 + gain, or the reverse',
    change: withNorm((norm) =>
      norm.gain === null ? null : { ...norm, offset: norm.offset === 1 ? 0 : 1 },
    ),
  },
  {
    id: 'gain-of-other-head',
    sentence: 'the gain is of the head before',
    change: withMovedGain(-1),
  },
  {
    id: 'gain-of-other-head',
    sentence: 'the gain is of the head behind',
    change: withMovedGain(1),
  },
];

function changed(of: SupposedPart, { change }: PrologueFault): SupposedPart {
  const prologue = change(of.part);
  return prologue === null ? of : supposedPart({ ...of.part, prologue }, of.terms);
}

/** Writers whose norm or rotation is wrong. */
export function* valueFaults(right: Supposition): Generator<WriteFault> {
  for (const fault of [...rotaryFaults, ...normFaults]) {
    const applies = right.parts.some(({ part }) => fault.change(part) !== null);
    if (!applies) continue;
    const { id, sentence } = fault;
    yield { id, sentence, supposed: withParts(right, (of) => changed(of, fault)) };
  }
}
