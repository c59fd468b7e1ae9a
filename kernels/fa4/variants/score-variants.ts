import { decode, formats } from '../../../src/formats/index.js';
import { conversions } from '../../../src/hardware/index.js';
import { roundingConversions } from '../../online-softmax/units.js';
import { type KernelVariant, variant } from './variant.js';
import type { KeyRange, Problem, ProblemShape } from '../../../src/problem/index.js';
import type { ForwardVariation } from '../forward.js';

/** Bugs of the scores and their scale. */
export const scoreVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'score-overflow-nan',
      title: 'Scores are rounded to 16 bits before the softmax',
      source: 'pytorch/pytorch #119131',
      mechanism:
        'Raw scores are kept in the format of the output. One that overflows is the maximum, and ∞ − ∞ is NaN; short of that, large scores lose their low bits.',
      visibleWhen:
        'scores beyond the largest finite number: 65504 for fp16, 3.4e38 for bf16; large ones by their rounding',
    },
    {
      steps: ({ configuration }) => {
        const conversion = conversions[roundingConversions[configuration.outFormat]];
        return {
          score: (bits) => decode(formats[configuration.outFormat], conversion.evaluate(bits)),
        };
      },
    },
  ),
  variant(
    {
      id: 'scale-twice',
      title: 'The softmax scale is applied twice',
      mechanism: 'Scores are scaled once as Q is read and once more in the exponent.',
      visibleWhen: 'a scale other than 1',
    },
    { scale: (scale, softmaxScale) => Math.fround(scale * Math.fround(softmaxScale)) },
  ),
];

/** Number of further keys that a shifted limit of the mask lets a query see; none by default. */
interface MaskShift {
  readonly causal?: number;
  readonly left?: number;
  readonly right?: number;
  /** Infinity: as far as the block goes. */
  readonly tail?: number;
}

/** Range of keys that a query sees under the problem's masks with their limits shifted. */
function shiftedMask(
  { causal, window }: Problem,
  { keys, queries }: ProblemShape,
  row: number,
  shift: MaskShift,
): KeyRange {
  const diagonal = row + keys - queries;
  const { left, right } = window ?? { left: -1, right: -1 };
  let begin = 0;
  let end = keys + (shift.tail ?? 0);
  if (causal) end = Math.min(end, diagonal + 1 + (shift.causal ?? 0));
  if (right >= 0) end = Math.min(end, diagonal + right + 1 + (shift.right ?? 0));
  if (left >= 0) begin = Math.max(begin, diagonal - left - (shift.left ?? 0));
  end = Math.max(end, 0);
  return begin < end ? { begin, end } : { begin: end, end };
}

function shifting(shift: MaskShift): ForwardVariation {
  return {
    paths: { visibleKeys: (problem, shape, row) => shiftedMask(problem, shape, row, shift) },
  };
}

const limits = [
  { name: 'causal', title: 'causal limit', of: 'the causal mask', when: 'a causal mask' },
  { name: 'window-left', title: "window's left limit", of: 'the window', when: 'a left window' },
  {
    name: 'window-right',
    title: "window's right limit",
    of: 'the window',
    when: 'a right window that is narrower than the causal mask, if there is one',
  },
] as const;
const keyOf = { causal: 'causal', 'window-left': 'left', 'window-right': 'right' } as const;
const directions = [
  { name: 'one-more', shift: 1, word: 'more' },
  { name: 'one-less', shift: -1, word: 'less' },
] as const;

/** Bugs of the masks. The blocks visited are the kernel's. */
export const maskVariants: readonly KernelVariant[] = [
  variant(
    {
      id: 'missing-tail-mask',
      title: 'Keys beyond the last one enter the sum',
      source: 'FluxML/NNkernels.jl #16',
      mechanism:
        'The last block is not cut at seqlen_k. Its keys beyond are zeros, whose scores of 0 enter maximum and row sum, but not the product with V.',
      visibleWhen: 'seqlen_k not a multiple of the block, and no causal mask that hides the rest',
    },
    shifting({ tail: Infinity }),
  ),
  ...limits.flatMap(({ name, title, of, when }) =>
    directions.map((direction) =>
      variant(
        {
          id: `${name}-${direction.name}`,
          title: `The ${title} is off by one key`,
          mechanism: `A query sees one key ${direction.word} than ${of} allows, within the blocks that it visits.`,
          visibleWhen: when,
        },
        shifting({ [keyOf[name]]: direction.shift }),
      ),
    ),
  ),
];
