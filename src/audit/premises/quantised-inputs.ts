import {
  describeQuantisation,
  quantisationOf,
  quantiseProblem,
  type PremiseDeclaration,
  type QuantisationSteps,
} from '../../../kernels/index.js';
import { decodeTensor, formats, unitRoundoff } from '../../formats/index.js';
import { problemShape, type LseShift, type Problem } from '../../problem/index.js';

/** Relative error of an fp32 sum of products, for each product. */
const sumError = 2 ** -23;

/**
 * What a kernel adds to the LSE of smoothed keys, scale·q·mean, a product that it rounds to the format of Q.
 * @param mean [batch × kv heads × dim], subtracted from every key
 */
function lseShiftOf(problem: Problem, mean: Float64Array): LseShift {
  const { batch, heads, kvHeads, groupSize, queries, qkDim } = problemShape(problem);
  const q = decodeTensor(problem.q);
  const rows = batch * heads * queries;
  const [values, errors] = [new Float64Array(rows), new Float64Array(rows)];
  const rounding = unitRoundoff(formats[problem.q.format]) + 4 * sumError;
  for (let row = 0; row < rows; row++) {
    const head = Math.floor(row / queries);
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    let [sum, size] = [0, 0];
    for (let t = 0; t < qkDim; t++) {
      const product = q[row * qkDim + t] * mean[kv * qkDim + t];
      sum += product;
      size += Math.abs(product);
    }
    values[row] = problem.scale * sum;
    errors[row] = Math.abs(problem.scale) * (rounding * Math.abs(sum) + qkDim * sumError * size);
  }
  return { values, errors };
}

/**
 * The problem that a kernel which quantises its inputs itself, as it declares, multiplies, with what it adds to the LSE; the problem
 * itself where it declares nothing, or is that problem already.
 * @param steps replaces steps of the quantisation, for kernels with a fault
 * @throws RequestError for a problem that is not known to be quantised so
 */
export function quantisedInputs(
  problem: Problem,
  declared: PremiseDeclaration | undefined,
  steps: QuantisationSteps = {},
): Problem {
  const quantisation = declared === undefined ? null : quantisationOf(declared);
  if (quantisation === null || declared === undefined || problem.quantisedFrom !== undefined)
    return problem;
  // Inputs that were quantised before are what such a kernel reads.
  const isGiven = quantisation.operands !== null && problem.q.scales !== undefined;
  const own = isGiven ? { ...quantisation, operands: null } : quantisation;
  if (isGiven && problem.v.format === own.values) return problem;
  const { problem: inner, mean } = quantiseProblem(problem, own, steps);
  const isCorrected = mean !== null && declared.smoothedLse !== 'as-smoothed';
  return {
    ...inner,
    quantisedFrom: problem,
    ...(isCorrected && { lseShift: lseShiftOf(problem, mean) }),
  };
}

/** The quantisation that a declaration describes, in words; null for none. */
export function quantisationWords(declared: PremiseDeclaration): string | null {
  const quantisation = quantisationOf(declared);
  return quantisation === null ? null : describeQuantisation(quantisation);
}
