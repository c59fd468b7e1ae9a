import * as fc from 'fast-check';
import type { KernelVariant } from '../../../kernels/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import {
  attentionProblem,
  checkKernel,
  modelPromises,
  type CheckOptions,
  type LawFailure,
  type LawId,
} from '../../../properties/index.js';
import { auditAccuracy, auditOutputs } from '../../../src/audit/index.js';
import type { FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';

/** A variant of fa4 as a kernel under test. */
function variantUnderTest({ id }: KernelVariant) {
  const { kernel, promises } = modelPromises('fa4', new Map([['variant', id]]));
  // The table of docs/reference/properties.md is of problems without features.
  return { kernel, promises: { ...promises, features: [] } };
}

/** The first law that a variant is seen to violate; null when none is. */
export async function firstCatch(
  variant: KernelVariant,
  options: CheckOptions,
): Promise<(LawFailure & { readonly law: LawId }) | null> {
  const { kernel, promises } = variantUnderTest(variant);
  const { laws } = await checkKernel(kernel, promises, { ...options, bail: true });
  const violated = laws.find(({ failure }) => failure !== null);
  return violated === undefined ? null : { ...violated.failure!, law: violated.id };
}

const shapes: readonly Readonly<{
  queries: number;
  keys: number;
  causal?: boolean;
  window?: boolean;
}>[] = [
  { queries: 128, keys: 128 },
  { queries: 256, keys: 256, causal: true },
  { queries: 113, keys: 203 },
  { queries: 113, keys: 203, causal: true },
  { queries: 203, keys: 113, causal: true },
  { queries: 256, keys: 256, window: true },
];

function exactly(size: number) {
  return { min: size, max: size };
}

/** The problems of an ordinary test: standard normal values, usual sizes, masks, grouped heads. */
export function ordinaryProblems(format: FormatName): readonly Problem[] {
  return shapes.map(({ queries, keys, causal = false, window = false }, i) => {
    const arbitrary = attentionProblem({
      formats: [format],
      regimes: ['normal'],
      scales: ['default'],
      batch: exactly(1),
      kvHeads: exactly(2),
      groupSize: exactly(2),
      queries: exactly(queries),
      keys: exactly(keys),
      dims: [64],
      maximumElements: 2 ** 40,
      causal,
      window: false,
      softcap: false,
    });
    const [problem] = fc.sample(arbitrary, { seed: 20_261_121 + i, numRuns: 1 });
    return window ? { ...problem!, window: { left: 64, right: 0 } } : problem!;
  });
}

/** Those who look at the outputs of ordinary problems. */
export const checkers = [
  'allclose 1e-2',
  'FlashAttention 2×',
  'cosine 0.999',
  'audit',
  'audit --as fa4',
] as const;

/** The checkers that see a variant on ordinary problems. */
export async function ordinaryCatches(
  variant: KernelVariant,
): Promise<ReadonlySet<(typeof checkers)[number]>> {
  const { kernel, promises } = variantUnderTest(variant);
  const formats = variant.id.startsWith('fp8') ? (['e4m3'] as const) : (['bf16', 'fp16'] as const);
  const seen = new Set<(typeof checkers)[number]>();
  for (const problem of formats.flatMap((format) => ordinaryProblems(format))) {
    const { out, lse = null } = await kernel(problem);
    const reference = attentionOracle(problem, { accuracy: auditAccuracy(out.format) });
    const judged = (options: Parameters<typeof auditOutputs>[2]) =>
      auditOutputs(problem, { out, lse }, { reference, diagnose: false, ...options });
    const { verdict, baselines } = judged({});
    const arithmetic = promises.arithmetic?.(problem) ?? undefined;
    if (!baselines.allclose.pass) seen.add('allclose 1e-2');
    if (!baselines.flashAttention.pass) seen.add('FlashAttention 2×');
    if (!baselines.cosine.pass) seen.add('cosine 0.999');
    if (!verdict.pass) seen.add('audit');
    if (arithmetic !== undefined && !judged({ arithmetic }).verdict.pass)
      seen.add('audit --as fa4');
  }
  return seen;
}
