import { naiveGradients } from '../../../kernels/index.js';
import { decodeTensor, formats } from '../../formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../problem/index.js';
import { formatNumber, listed } from '../../words/index.js';
import { flashAttentionRule, type Baselines } from '../baselines.js';
import { multiplyAddsOf } from '../rows/index.js';
import type { GradientQuantityName } from './gradient-quantities.js';
import { isOfTensors } from './given-gradients.js';
import { measuredGradient, type GivenGradient, type GivenJudged } from './judge-gradient.js';
import type { MeasuredGradients } from './measure-gradients.js';

/** The result of FlashAttention's rule for a gradient. */
export type GradientRule = Baselines['flashAttention'];

/** The rule's results for the gradients that were given; and the gradients that it does not cover, a clause each. */
export interface GradientRules {
  readonly rules: Readonly<Partial<Record<GradientQuantityName, GradientRule>>>;
  readonly skipped: readonly string[];
}

/**
 * Multiply-adds of the forward beyond which textbook gradients are not computed: these, 2.5 times as many one by one in fp32, take
 * some seconds.
 */
const mostMultiplyAdds = 2 ** 26;

/**
 * The additional error that the rule of gradients allows under a softcap, beside that of the output's rule: a constant of
 * tests/cute/test_flash_attn.py.
 */
const softcapSlack = 3e-4;

/** The reason why the rule does not cover a problem; null where it does. */
function refusal(problem: Problem, given: readonly GivenGradient[], isSample: boolean) {
  if (isSample) return 'which is of all rows and keys';
  const { format } = problem.q;
  if (formats[format].storageBits <= 8) return 'which is of inputs of 16 bits or more';
  const other = given.find((one) => one.format !== format);
  if (other !== undefined)
    return `since ${other.quantity.prose} is in ${other.format} and PyTorch gives it in ${format}`;
  const count = multiplyAddsOf(problem, problemShape(problem));
  return count <= mostMultiplyAdds
    ? null
    : `since textbook gradients are not computed beyond ${formatNumber(mostMultiplyAdds)} multiply-adds of the forward, of which there are ${formatNumber(count)}`;
}

/**
 * FlashAttention's rule for gradients, as its tests of FlashAttention-4 have it: the largest error, against exact gradients
 * rounded to the format, is at most twice (with a softcap three times) that of textbook gradients whose every pass is written in the
 * format of the inputs, plus twice the rounding of adding and subtracting 0.3, and 3·10^-4 under a softcap. It takes no part in the verdict.
 * @param isSample whether not all rows and keys were judged
 */
export function usualRules(
  problem: Problem,
  dout: Tensor,
  all: readonly GivenJudged[],
  measured: MeasuredGradients,
  isSample: boolean,
): GradientRules {
  const given = all.filter(isOfTensors);
  const others = all.filter((one) => !isOfTensors(one)).map(({ quantity }) => quantity.prose);
  const unknown =
    others.length === 0
      ? []
      : [`FlashAttention's rule for ${listed(others)}, which its tests do not compare`];
  if (given.length === 0) return { rules: {}, skipped: unknown };
  const reason = refusal(problem, given, isSample);
  if (reason !== null)
    return { rules: {}, skipped: [`FlashAttention's rule for gradients, ${reason}`, ...unknown] };
  const textbook = naiveGradients(problem, dout, problem.q.format);
  const rules = given.map(({ quantity: { name }, values, format }) => {
    const { exact } = measuredGradient(measured, name);
    const slack = problem.softcap === null ? 0 : softcapSlack;
    const rule = flashAttentionRule(problem, exact.values, values, {
      lowPrecision: decodeTensor(textbook[name]),
      format,
      slack,
    });
    return [name, rule] as const;
  });
  return { rules: Object.fromEntries(rules), skipped: unknown };
}
