import { attentionGradients } from '../../../../oracles/index.js';
import type { Finding } from '../../findings.js';
import type { SharedGradientName } from '../gradient-quantities.js';
import { measuredGradient, type GivenJudged, type GradientJudgement } from '../judge-gradient.js';
import { withRowFactors } from './changed-gradients.js';
import type { GradientDiagnosis } from './diagnosis.js';
import { acceptedCauses, foundCause, unexplainedCause } from '../../conduct/causes.js';
import { multiplyAddsOf } from '../../rows/index.js';
import type { Tensor } from '../../../problem/index.js';
import { isAsPredicted } from './prediction.js';

/** A gradient of a bias or of sinks. */
type GivenShared = GivenJudged & { readonly quantity: { readonly name: SharedGradientName } };

/** A cause, and the gradient that it gives. */
interface SharedPrediction {
  readonly id: string;
  readonly sentence: string;
  readonly values: Float64Array;
}

/** Multiply-adds of exact gradients from which on none are computed again. */
const mostMultiplyAdds = 1e9;

function isShared(one: GivenJudged): one is GivenShared {
  return one.quantity.name === 'dbias' || one.quantity.name === 'dsink';
}

/** Factors by which the whole gradient is too large. */
function* factors(
  { quantity: { name, prose } }: GivenShared,
  exact: Float64Array,
  { problem: { scale } }: GradientJudgement,
): Generator<SharedPrediction> {
  const times = (factor: number) => exact.map((x) => x * factor);
  if (name === 'dbias' && scale !== 1)
    yield {
      id: 'scale-in-bias',
      sentence: `${prose} is multiplied by the scale, which it does not have`,
      values: times(scale),
    };
  yield { id: 'sign', sentence: `${prose} has the wrong sign`, values: times(-1) };
}

/** Faults in adding over the batch: one entry only, all but one, one of them in the place of each. */
function* batchEntries(
  { quantity: { name, prose } }: GivenShared,
  exact: Float64Array,
  { problem, measured: { shape } }: GradientJudgement,
  dout: Tensor,
): Generator<SharedPrediction> {
  const { batch, heads, queries } = shape;
  if (batch === 1 || measuredBatches(name, problem.bias) > 1) return;
  const entries = Array.from({ length: batch }, (_, entry) => {
    const ofEntry = Float64Array.from({ length: batch * heads * queries }, (__, row) =>
      Math.floor(row / (heads * queries)) === entry ? 1 : 0,
    );
    const found = attentionGradients(problem, withRowFactors(dout, ofEntry), { wanted: [name] });
    return found[name]?.values ?? exact;
  });
  for (const [entry, own] of entries.entries()) {
    yield {
      id: 'batch-entry-only',
      sentence: `${prose} has what batch entry ${entry} adds, and nothing of the others`,
      values: own,
    };
    yield {
      id: 'batch-entry-missing',
      sentence: `${prose} lacks what batch entry ${entry} adds`,
      values: exact.map((x, i) => x - own[i]),
    };
    yield {
      id: 'batch-entry-repeated',
      sentence: `${prose} has what batch entry ${entry} adds in the place of every other`,
      values: own.map((x) => batch * x),
    };
  }
}

/** Number of entries of a batch that have a gradient of their own. */
function measuredBatches(name: SharedGradientName, bias: Tensor | undefined): number {
  return name === 'dsink' ? 1 : ([1, 1, 1, 1, ...(bias?.shape ?? [])].at(-4) ?? 1);
}

/**
 * The cause of a gradient of a bias or of sinks that fails where those of Q, K and V do not: the fault whose exact gradient it
 * is up to rounding, if it is the only one that fails.
 */
export function diagnoseShared(
  given: readonly GivenJudged[],
  findings: readonly Finding[],
  judgement: GradientJudgement & { readonly dout: Tensor },
): GradientDiagnosis {
  const failing = given.filter(
    (one): one is GivenShared =>
      isShared(one) && findings.some(({ quantity }) => quantity === one.quantity.name),
  );
  const { problem, measured, dout } = judgement;
  const isSmall = multiplyAddsOf(problem, measured.shape) <= mostMultiplyAdds;
  const [one] = failing;
  const isFinite = !findings.some(({ test }) => test.endsWith('-non-finite'));
  if (failing.length !== 1 || !isFinite) return unexplainedCause();
  const exact = measuredGradient(measured, one.quantity.name).exact.values;
  const accepted = (predictions: Iterable<SharedPrediction>, least?: number) =>
    acceptedCauses([() => predictions], null, (prediction) => {
      const { values: predicted } = prediction;
      return isAsPredicted(one, { predicted, sizes: null }, judgement, least) ? prediction : null;
    });
  const ofFactors = accepted(factors(one, exact, judgement));
  // Roundings of a sum do not shrink as it does where a part is left out.
  const found =
    ofFactors.length === 0 && isSmall
      ? accepted(batchEntries(one, exact, judgement, dout), 1)
      : ofFactors;
  const [first] = found;
  if (first === undefined) return unexplainedCause();
  return foundCause(first, ['against what this fault gives it passes all tests'], found);
}
