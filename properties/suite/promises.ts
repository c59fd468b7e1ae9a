import {
  checkDeclaration,
  parseDeclaration,
  type GradientPremises,
  type KernelArithmetic,
  type PremiseDeclaration,
} from '../../src/audit/index.js';
import { plainFormats, type FormatName } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type {
  KernelConfiguration,
  Law,
  LawId,
  LawStrength,
  ProblemPromises,
  ResultMerger,
  ValueFollower,
  ScoreLimit,
  SplitRunner,
} from '../laws/index.js';
import {
  featureKinds,
  resolveConstraints,
  scaleKinds,
  sizeNames,
  type FeatureKind,
  type ScaleKind,
  type SizeMultiples,
  type SizeName,
  type SizeRange,
} from '../problems/index.js';
import { knownName, promisedLaws } from './promised-laws.js';

/** Narrows the promised problems. */
interface ProblemLimits {
  readonly formats?: readonly FormatName[] | undefined;
  readonly features?: readonly FeatureKind[] | undefined;
  readonly sizes?: Partial<ProblemPromises['sizes']> | undefined;
  readonly multiples?: SizeMultiples | undefined;
}

/** Promises of a kernel: the problems that it takes, and the laws that it obeys with their strengths. */
export interface KernelPromises {
  /** Formats of Q, K and V, which share one; default bf16 and fp16. */
  readonly formats?: readonly FormatName[] | undefined;
  /** Whether it takes a causal mask, or takes no problem without one; default true. */
  readonly causal?: boolean | 'only' | undefined;
  /** Whether it takes a sliding window; default true. */
  readonly window?: boolean | undefined;
  /** Whether it takes a softcap; default false. */
  readonly softcap?: boolean | undefined;
  /** Other features of problems that it takes, as in ['mask', 'packed']; default none. */
  readonly features?: readonly FeatureKind[] | undefined;
  /** Whether it takes fewer kv heads than query heads; default true. */
  readonly groupedHeads?: boolean | undefined;
  /** Whether it takes masks that leave a query without a key; default true. */
  readonly emptyRows?: boolean | undefined;
  /** Kinds of scale; default `default` and `odd`: kernels that take the maximum of raw scores need positive ones. */
  readonly scales?: readonly ScaleKind[] | undefined;
  /**
   * Whether infinities and NaNs in the inputs propagate as in IEEE arithmetic, in the LSE too; default
   * false: FlashAttention-4 gives LSE −∞ for a row of NaNs.
   */
  readonly specialValues?: boolean | undefined;
  /** Whether it must give an LSE; default false: the LSE is judged where there is one. */
  readonly lse?: boolean | undefined;
  /** Head dimensions, the same for Q, K and V; default any from 1, and V's may differ. */
  readonly dims?: readonly number[] | undefined;
  /** Limits of sizes, as in `{ queries: { max: 64 } }`. */
  readonly sizes?: Readonly<Partial<Record<SizeName, SizeRange>>> | undefined;
  /** Keys that it works on at a time; problems are aimed at multiples of this; default 128. */
  readonly blockKeys?: number | undefined;
  /** log2 of the most that a running maximum may lag; problems are aimed at it; default 8. */
  readonly rescaleThreshold?: number | undefined;
  /**
   * The largest scores; default |q·k| to 2^100, and 2^20 after the scale: FlashAttention's s·c − m·c, with
   * m·c rounded before, overflows for those of 2^30.
   */
  readonly scoreLimit?: Partial<ScoreLimit> | undefined;
  /**
   * Declared arithmetic, if it differs from that of any correct kernel: premises, the name of a preset
   * such as `eager`, or a function that declares them for a problem. See `premiseWords`.
   */
  readonly premises?:
    PremiseDeclaration | string | ((problem: Problem) => PremiseDeclaration) | undefined;
  /** See `AuditOptions.strictPremises`; set by the user of the check, not by the kernel. */
  readonly strictPremises?: boolean | undefined;
  /** The arithmetic on a problem, for bounds tighter than those of any correct kernel. */
  readonly arithmetic?: ((problem: Problem) => KernelArithmetic | null) | undefined;
  /** Other settings of the kernel, by name: they too must stay within the bound. */
  readonly configurations?: Readonly<Record<string, KernelConfiguration>> | undefined;
  /** Laws by id: to the last bit, within rounding, or not at all. */
  readonly laws?: Readonly<Partial<Record<LawId, LawStrength | 'none'>>> | undefined;
  /** The only numbers of query heads that share a kv head, as in [1, 4, 8]; default any. */
  readonly groupSizes?: readonly number[] | undefined;
  /**
   * Whether its adapter fills output buffers and scratch with `conditions.fill` before it runs, where that is given;
   * default false.
   */
  readonly fillsBuffers?: boolean | undefined;
  /** The kernel with its keys cut into splits, and the numbers of splits that it takes; default none. */
  readonly splits?: SplitRunner | undefined;
  /** Combines results of parts of the keys; default it does not. */
  readonly merge?: ResultMerger | undefined;
  /** Runs it and follows its values, for laws of what they mean; default it cannot be followed. */
  readonly follow?: ValueFollower | undefined;
  /** Divisors of sizes, as in `{ keys: 64 }`; default 1. */
  readonly multiples?: SizeMultiples | undefined;
  /** Whether it gives dQ, dK and dV where `conditions.dout` is given; default false. */
  readonly gradients?: boolean | undefined;
  /**
   * Whether its gradients, and those that laws derive from these, are the same bits in every run; default false: then
   * they are compared within the bound, as atomics in any order leave them.
   */
  readonly deterministic?: boolean | undefined;
  /** Whether its backward pass reads `conditions.forward` where that is given; default false. */
  readonly readsForward?: boolean | undefined;
  /** Narrows the problems for which it takes requests for gradients; default the same problems. */
  readonly gradientProblems?: ProblemLimits | undefined;
  /** The arithmetic of gradients of a format on a problem; default, and for null, that of any correct kernel. */
  readonly gradientPremises?:
    ((problem: Problem, output: FormatName) => GradientPremises | null) | undefined;
}

/** Promises with their defaults. */
export interface ResolvedPromises extends ProblemPromises {
  /** Narrows the problems for which it takes requests for gradients. */
  readonly gradientProblems: ProblemLimits;
  /** The strength of each law for the kernel. */
  readonly laws: Readonly<Record<LawId, LawStrength | 'none'>>;
}

const promiseNames: Readonly<Record<keyof KernelPromises, true>> = {
  formats: true,
  causal: true,
  window: true,
  softcap: true,
  features: true,
  groupedHeads: true,
  emptyRows: true,
  scales: true,
  specialValues: true,
  lse: true,
  dims: true,
  sizes: true,
  blockKeys: true,
  rescaleThreshold: true,
  scoreLimit: true,
  premises: true,
  strictPremises: true,
  arithmetic: true,
  configurations: true,
  laws: true,
  groupSizes: true,
  multiples: true,
  fillsBuffers: true,
  splits: true,
  merge: true,
  follow: true,
  gradients: true,
  deterministic: true,
  readsForward: true,
  gradientProblems: true,
  gradientPremises: true,
};

/** @throws RequestError for an unknown premise, value or preset */
function promisedPremises(declared: KernelPromises['premises'] = {}): ResolvedPromises['premises'] {
  if (typeof declared === 'function')
    return (problem) => (problem === null ? {} : declared(problem));
  const known =
    typeof declared === 'string'
      ? parseDeclaration(declared, 'promise premises')
      : checkDeclaration(declared, 'promise premises');
  return () => known;
}

/**
 * Promises with every default filled in.
 * @throws RequestError for an unknown promise, format or law, or a strength that a law does not have
 */
export function resolvePromises(promises: KernelPromises = {}): ResolvedPromises {
  for (const name of Object.keys(promises))
    knownName('promise', name, Object.keys(promiseNames) as (keyof KernelPromises)[]);
  const known = plainFormats;
  const inputs = promises.formats ?? ['bf16', 'fp16'];
  for (const name of inputs) knownName('format', name, known);
  for (const kind of promises.features ?? []) knownName('feature', kind, featureKinds);
  for (const kind of promises.scales ?? []) knownName('kind of scale', kind, scaleKinds);
  const { blockKeys = 128, rescaleThreshold = 8, causal = true, deterministic = false } = promises;
  if (![true, false, 'only'].includes(causal))
    throw new RequestError(
      `promise causal is ${JSON.stringify(causal)}; give true, false or "only"`,
    );
  // What constraints on sizes refuse, promises of them do.
  const { dims, groupSizes, multiples } = promises;
  resolveConstraints({ ...promises.sizes, dims, groupSizes, multiples });
  if (!(Number.isSafeInteger(blockKeys) && blockKeys > 0))
    throw new RequestError(`promise blockKeys is ${blockKeys}; give a positive whole number`);
  if (!(rescaleThreshold >= 0))
    throw new RequestError(`promise rescaleThreshold is ${rescaleThreshold}; give 0 or more`);
  const premises = promisedPremises(promises.premises);
  return {
    formats: inputs,
    causal,
    window: promises.window ?? true,
    softcap: promises.softcap ?? false,
    features: promises.features ?? [],
    groupedHeads: promises.groupedHeads ?? true,
    emptyRows: promises.emptyRows ?? true,
    scales: promises.scales ?? ['default', 'odd'],
    specialValues: promises.specialValues ?? false,
    lse: promises.lse ?? false,
    dims: promises.dims ?? null,
    sizes: promises.sizes ?? {},
    blockKeys,
    rescaleThreshold,
    scoreLimit: { raw: 2 ** 100, scaled: 2 ** 20, ...promises.scoreLimit },
    premises,
    strictPremises: promises.strictPremises ?? false,
    arithmetic: promises.arithmetic ?? (() => null),
    configurations: promises.configurations ?? {},
    laws: promisedLaws(promises.laws, { declared: premises(null), deterministic }),
    groupSizes: promises.groupSizes ?? null,
    multiples: promises.multiples ?? {},
    fillsBuffers: promises.fillsBuffers ?? false,
    splits: promises.splits ?? null,
    merge: promises.merge ?? null,
    follow: promises.follow ?? null,
    gradients: promises.gradients ?? false,
    deterministic,
    readsForward: promises.readsForward ?? false,
    gradientProblems: promises.gradientProblems ?? {},
    gradientPremises: promises.gradientPremises ?? (() => null),
  };
}

/** Ranges within those of both. */
function narrowerSizes(
  promised: ProblemPromises['sizes'],
  limits: NonNullable<ProblemLimits['sizes']>,
): ProblemPromises['sizes'] {
  const entries = sizeNames.flatMap((name) => {
    const ranges = [promised[name], limits[name]].filter((range) => range !== undefined);
    if (ranges.length === 0) return [];
    const min = Math.max(...ranges.map((range) => range.min ?? 0));
    const max = Math.min(...ranges.map((range) => range.max ?? Infinity));
    return [[name, { ...(min > 0 ? { min } : {}), ...(max < Infinity ? { max } : {}) }] as const];
  });
  return Object.fromEntries(entries);
}

/** The promises that hold of a law's problems: of gradients those that the backward pass takes. */
export function promisesOf(
  { ofGradients = false }: Pick<Law, 'ofGradients'>,
  promises: ResolvedPromises,
): ResolvedPromises {
  if (!ofGradients) return promises;
  const { formats, features, sizes = {}, multiples } = promises.gradientProblems;
  return {
    ...promises,
    formats: promises.formats.filter((name) => formats?.includes(name) ?? true),
    features: promises.features.filter((kind) => features?.includes(kind) ?? true),
    sizes: narrowerSizes(promises.sizes, sizes),
    multiples: { ...promises.multiples, ...multiples },
  };
}
