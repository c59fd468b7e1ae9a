import { problemShape, type Problem } from '../../src/problem/index.js';
import type { KernelSetting } from '../kernel-model.js';
import type { PolynomialDegree } from '../online-softmax/exp2-polynomial.js';
import {
  booleanValue,
  checkKeys,
  choiceValue,
  defined,
  givenValues,
  numberValue,
} from '../setting-values.js';
import {
  fa4ArchitectureOf,
  fa4Configuration,
  type Fa4Configuration,
  type Fa4Format,
  type Fa4Overrides,
} from './configuration.js';
import { createFa4Forward, type Fa4Forward } from './forward.js';
import {
  checkVariantApplies,
  kernelVariants,
  noVariant,
  variantSetting,
} from './variants/index.js';

/** Settings of FlashAttention-4's forward. */
export const forwardSettings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_90, sm_100 (default), sm_103 or sm_110' },
  { key: 'exp2.frequency', description: 'columns of a period of the split; 0: hardware only' },
  { key: 'exp2.reserve', description: 'the last columns of a period, computed in software' },
  { key: 'exp2.startFragment', description: 'the first fragment of 32 columns that is split' },
  { key: 'exp2.degree', description: 'degree of the polynomial, 1 to 5' },
  {
    key: 'rescale.threshold',
    description: 'log2 of how far a maximum may lag; 0: not at all, inf: any way',
  },
  { key: 'maxOffset', description: 'added to every exponent' },
  {
    key: 'lse.fused',
    description: 'whether m·c + log2 l is one fused multiply-add; default not for sm_90',
  },
  { key: 'blockKeys', description: 'keys of a block, a multiple of 32' },
  { key: 'out.format', description: 'bf16 or fp16; default that of the inputs, bf16 for fp8' },
  { key: 'descale.q', description: 'what fp8 Q is multiplied by, in the scale of the exponents' },
  { key: 'descale.k', description: 'the same for K' },
  {
    key: 'descale.v',
    description: 'what fp8 V is multiplied by, at the end; a problem may have them by head',
  },
  {
    key: 'splits',
    description: 'parts of the keys whose results are combined, 1 (default) to 256',
  },
  {
    key: 'packGqa',
    description:
      'whether query heads of a group share tiles: true or false; default as FlashAttention-4 does',
  },
  {
    key: 'variant',
    description: `one of ${kernelVariants.length} bugs, switched on (default ${noVariant}); any other word lists them`,
  },
];

/** The configuration as settings, by key. */
export function settingsOf(
  configuration: Fa4Configuration,
): Record<string, string | number | boolean> {
  const { architecture, exp2, rescaleThreshold, maxOffset, lseFused, blockKeys } = configuration;
  const { outFormat, descale, splits, packGqa } = configuration;
  return {
    architecture,
    'exp2.frequency': exp2.frequency,
    'exp2.reserve': exp2.reserve,
    'exp2.startFragment': exp2.startFragment,
    'exp2.degree': exp2.degree,
    'rescale.threshold': rescaleThreshold === Infinity ? 'inf' : rescaleThreshold,
    maxOffset,
    'lse.fused': lseFused,
    blockKeys,
    'out.format': outFormat,
    'descale.q': descale.q,
    'descale.k': descale.k,
    'descale.v': descale.v,
    splits,
    packGqa,
  };
}

/**
 * A configuration as the settings, as text by key, that choose it.
 * @param configuration choices that differ from FlashAttention-4's
 */
export function fa4Settings(configuration: Partial<Fa4Configuration>): Map<string, string> {
  const { exp2, descale, rescaleThreshold, lseFused, outFormat, ...alike } = configuration;
  const values: Record<string, string | number | boolean | undefined> = {
    ...alike,
    'exp2.frequency': exp2?.frequency,
    'exp2.reserve': exp2?.reserve,
    'exp2.startFragment': exp2?.startFragment,
    'exp2.degree': exp2?.degree,
    'rescale.threshold': rescaleThreshold,
    'lse.fused': lseFused,
    'out.format': outFormat,
    'descale.q': descale?.q,
    'descale.k': descale?.k,
    'descale.v': descale?.v,
  };
  return new Map(
    Object.entries(values).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, String(value)] as const],
    ),
  );
}

/** The forward's choices, from settings as text by key. @throws RequestError for a bad value */
export function overridesOf(texts: ReadonlyMap<string, string>): Fa4Overrides {
  const given = givenValues(texts);
  return defined({
    architecture: given('architecture', (_, text) => fa4ArchitectureOf(text)),
    exp2: defined({
      frequency: given('exp2.frequency', numberValue),
      reserve: given('exp2.reserve', numberValue),
      startFragment: given('exp2.startFragment', numberValue),
      degree: given('exp2.degree', numberValue) as PolynomialDegree | undefined,
    }),
    rescaleThreshold: given('rescale.threshold', numberValue),
    maxOffset: given('maxOffset', numberValue),
    lseFused: given('lse.fused', booleanValue),
    blockKeys: given('blockKeys', numberValue),
    outFormat: given('out.format', (key, text) =>
      choiceValue(key, text, ['bf16', 'fp16'] as const),
    ),
    descale: defined({
      q: given('descale.q', numberValue),
      k: given('descale.k', numberValue),
      v: given('descale.v', numberValue),
    }),
    splits: given('splits', numberValue),
    packGqa: given('packGqa', booleanValue),
  });
}

/**
 * The configuration that settings, as text by key, choose for a problem, those of a variant included.
 * @throws RequestError for an unknown key or a bad value, and for a problem that the kernel does not
 * take
 */
export function fa4SettingsConfiguration(
  problem: Problem,
  texts: ReadonlyMap<string, string>,
): Fa4Configuration {
  checkKeys('fa4', forwardSettings, texts);
  const variant = variantSetting(texts);
  const chosen = new Map([...Object.entries(variant?.settings ?? {}), ...texts]);
  return fa4Configuration(problem, problemShape(problem), overridesOf(chosen));
}

/** A forward as chosen by settings, with the bug that they switch on. */
interface ChosenForward {
  readonly forward: Fa4Forward;
  readonly variant: ReturnType<typeof variantSetting>;
}

/**
 * The forward that settings, as text by key, choose for a problem.
 * @throws RequestError as `fa4SettingsConfiguration`, and for a variant that changes nothing here
 */
export function settingsForward(
  problem: Problem,
  texts: ReadonlyMap<string, string>,
): ChosenForward {
  checkKeys('fa4', forwardSettings, texts);
  const variant = variantSetting(texts);
  const chosen = new Map([...Object.entries(variant?.settings ?? {}), ...texts]);
  const forward = createFa4Forward(problem, {
    configuration: overridesOf(chosen),
    ...(variant === null ? {} : { variation: variant.variation }),
  });
  if (variant !== null)
    checkVariantApplies(variant, forward.configuration, problem.q.format as Fa4Format);
  return { forward, variant };
}
