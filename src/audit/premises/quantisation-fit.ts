import type { AttentionReference } from '../../../oracles/index.js';
import type { PremiseDeclaration } from '../../../kernels/index.js';
import type { Problem } from '../../problem/index.js';
import { RequestError } from '../../request-error.js';
import { formatRoughly } from '../../words/index.js';
import {
  quantisingKernels,
  saysQuantisation,
} from '../diagnosis/hypotheses/quantised/quantised-operands.js';
import { softmaxRow } from '../diagnosis/prediction.js';
import { RowReader } from '../diagnosis/row-reader.js';
import type { PremiseFit } from './premise-fit.js';
import { quantisationWords } from './quantised-inputs.js';
import { sampledRowsOf } from './sampled-errors.js';

/**
 * The declaration of a kernel that quantises Q and K itself by which an output passes, among those that quantise them as the cause of
 * its failure says: another would excuse what its own roundings do not.
 * @param cause the sentence of the cause
 * @param passes whether it passes with a declaration; throws a RequestError where none is possible
 */
export function fitQuantisation(
  cause: string,
  passes: (declared: PremiseDeclaration) => boolean,
): PremiseFit | null {
  for (const { flags, declared } of quantisingKernels) {
    if (!saysQuantisation(cause, declared)) continue;
    for (const smoothedLse of ['corrected', 'as-smoothed'] as const) {
      const own = { ...declared, smoothedLse };
      try {
        if (!passes(own)) continue;
      } catch (error) {
        if (error instanceof RequestError) continue;
        throw error;
      }
      return {
        declaration: own,
        statement: `A kernel that quantises its inputs so would pass: ${quantisationWords(own)!}`,
        flags,
      };
    }
  }
  return null;
}

/**
 * How far the quantisation of a kernel that quantises its inputs itself moves the output, on a sample of rows: its error is judged
 * against attention on the quantised inputs, and this distance is no part of it.
 */
export function quantisationNotes(
  problem: Problem,
  declared: PremiseDeclaration,
  reference: AttentionReference,
): string[] {
  const original = problem.quantisedFrom;
  const words = quantisationWords(declared);
  if (original === undefined || words === null) return [];
  const { shape } = reference;
  const { vDim } = shape;
  const reader = new RowReader(original, shape);
  const rows = sampledRowsOf(reference);
  let [moved, size] = [0, 0];
  for (const row of rows) {
    const { weights } = softmaxRow(reader.scores(row), new Float64Array(0));
    const values = reader.valuesOf(row, reader.kvHead(row));
    const out = new Float64Array(vDim);
    weights.forEach((w, j) => {
      if (w !== 0) for (let c = 0; c < vDim; c++) out[c] += w * values[j * vDim + c];
    });
    out.forEach((x, c) => {
      moved += (x - reference.quantities.out.values[row * vDim + c]) ** 2;
      size += x * x;
    });
  }
  if (rows.length === 0) return [];
  const count = rows.length * vDim;
  return [
    `judged against attention on what the kernel declares to quantise: ${words}; that quantisation moves the output by ${formatRoughly(Math.sqrt(moved / count))} (root mean square; the output's is ${formatRoughly(Math.sqrt(size / count))}), which is not counted as an error of the kernel`,
  ];
}
