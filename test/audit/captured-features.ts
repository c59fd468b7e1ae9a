import { fileURLToPath } from 'node:url';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { auditAccuracy, type KernelOutputs } from '../../src/audit/index.js';
import { openTensorFile, problemLayout, readProblem, toHeadsFirst } from '../../src/io/index.js';
import { lazily } from '../../src/reuse.js';
import { gatherOutput, quantities, type Problem } from '../../src/problem/index.js';
import { featuresFolder, readFeatures } from '../fixtures/features-manifest.js';

/** A captured problem with features, and what one kernel made of it. */
export interface FeatureCase {
  readonly file: string;
  readonly kernel: string;
  readonly problem: Problem;
  readonly outputs: KernelOutputs;
  /** The problem's exact attention as an audit wants it, computed once for all kernels of a file. */
  readonly reference: () => AttentionReference;
}

/** Every captured output, as file and kernel. */
export const featureCases = readFeatures().files.flatMap(({ name, outputs }) =>
  outputs.map((kernel) => ({ file: name, kernel })),
);

/** Reads what one kernel made of a captured problem. */
export async function readFeatureCase(file: string, kernel: string): Promise<FeatureCase> {
  const open = await openTensorFile(fileURLToPath(new URL(file, featuresFolder)));
  try {
    const problem = await readProblem(open);
    const [out, lse] = quantities;
    const layout = problemLayout(open, {});
    const written = await open.read(`${kernel}.out`);
    const turned =
      layout === 'bshd' && problem.stored === undefined ? toHeadsFirst(written) : written;
    const given: KernelOutputs = {
      out: gatherOutput(problem, out, turned),
      lse: open.entries.has(`${kernel}.lse`)
        ? gatherOutput(problem, lse, await open.read(`${kernel}.lse`))
        : null,
    };
    const accuracy = auditAccuracy(given.out.format);
    const reference = lazily(() => attentionOracle(problem, { accuracy }));
    return { file, kernel, problem, outputs: given, reference };
  } finally {
    await open.close();
  }
}
