import { join } from 'node:path';
import { attentionOracle } from '../../oracles/index.js';
import { auditAccuracy } from '../audit/index.js';
import { encodeFromFloat64, formats } from '../formats/index.js';
import { writeSafetensors } from '../io/index.js';
import { normalProblem, type ProblemSize } from './normal-problem.js';

/** The accuracy of the oracle that an audit asks for. */
export const auditedAccuracy = { accuracy: auditAccuracy('bf16') };

/** A problem in bf16, and a file of it with the exact output in bf16: since that passes, no cause is looked for. */
export async function writeAudited(folder: string, size: ProblemSize) {
  const problem = normalProblem('bf16', size);
  const { q, k, v } = problem;
  const { out } = attentionOracle(problem, auditedAccuracy).quantities;
  const path = join(folder, 'problem.safetensors');
  const data = encodeFromFloat64(formats.bf16, out.values);
  await writeSafetensors(path, { q, k, v, out: { ...q, data } });
  return { problem, path };
}
