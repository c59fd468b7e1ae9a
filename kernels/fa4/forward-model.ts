import type { AttributedKernel } from '../techniques.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelModel, KernelSetting } from '../kernel-model.js';
import {
  checkVariantApplies,
  kernelVariants,
  noVariant,
  variantSetting,
} from './variants/index.js';
import { booleanValue, checkKeys, choiceValue, defined, numberValue } from '../setting-values.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { fa4Arithmetic, fa4Exponentials, fa4Premises } from './arithmetic.js';
import { attributedFa4Kernel, checkAttributedVariant } from './attributed.js';
import { fa4Candidates, fa4Evidence, fa4Promises } from './declarations.js';
import type { PolynomialDegree } from '../online-softmax/exp2-polynomial.js';
import {
  fa4Configuration,
  type Fa4Configuration,
  type Fa4Format,
  type Fa4Overrides,
} from './configuration.js';
import { fa4FeatureEvidence } from './feature-evidence.js';
import { fa4Features } from './features.js';
import { createFa4Forward } from './forward.js';
import { fa4Program } from './machine-program.js';

const settings: readonly KernelSetting[] = [
  { key: 'architecture', description: 'sm_90, sm_100 (default) or sm_103' },
  { key: 'exp2.frequency', description: 'columns of a period of the split; 0: hardware only' },
  { key: 'exp2.reserve', description: 'the last columns of a period, computed in software' },
  { key: 'exp2.startFragment', description: 'the first fragment of 32 columns that is split' },
  { key: 'exp2.degree', description: 'degree of the polynomial, 1 to 5' },
  {
    key: 'rescale.threshold',
    description: 'log2 of how far a maximum may lag; 0: not at all, inf: any way',
  },
  { key: 'maxOffset', description: 'added to every exponent' },
  { key: 'lse.fused', description: 'whether m·c + log2 l is one fused multiply-add' },
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
function settingsOf(configuration: Fa4Configuration): Record<string, string | number | boolean> {
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
 * @param configuration what to choose otherwise than FlashAttention-4 would
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

/** What settings, as text by key, choose. @throws RequestError for a bad value */
function overridesOf(texts: ReadonlyMap<string, string>): Fa4Overrides {
  const given = <T>(key: string, parse: (key: string, text: string) => T): T | undefined => {
    const text = texts.get(key);
    return text === undefined ? undefined : parse(key, text);
  };
  return defined({
    architecture: given('architecture', (key, text) =>
      choiceValue(key, text, ['sm_90', 'sm_100', 'sm_103'] as const),
    ),
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
  checkKeys('fa4', settings, texts);
  const variant = variantSetting(texts);
  const chosen = new Map([...Object.entries(variant?.settings ?? {}), ...texts]);
  return fa4Configuration(problem, problemShape(problem), overridesOf(chosen));
}

/**
 * The forward on a problem with techniques that can be emulated or exact.
 *
 * @param overrides what to choose otherwise than FlashAttention-4 would for this problem
 * @throws RequestError as `createAttributedForward`
 */
export function attributeFa4(problem: Problem, overrides: Fa4Overrides = {}): AttributedKernel {
  return attributedFa4Kernel(problem, overrides, settingsOf);
}

/** FlashAttention-4's forward for Blackwell, bit for bit. */
export const fa4Model: KernelModel = kernelModel({
  name: 'fa4',
  description: "FlashAttention-4's forward, instruction by instruction, bit for bit",
  settings,
  features: fa4Features,
  emulated: ['scales'],
  prepare: (problem, texts) => {
    checkKeys('fa4', settings, texts);
    const variant = variantSetting(texts);
    const chosen = new Map([...Object.entries(variant?.settings ?? {}), ...texts]);
    const forward = createFa4Forward(problem, {
      configuration: overridesOf(chosen),
      ...(variant === null ? {} : { variation: variant.variation }),
    });
    const { configuration, shape, tiles } = forward;
    const format = problem.q.format as Fa4Format;
    if (variant !== null) checkVariantApplies(variant, configuration, format);
    return {
      shape,
      outFormat: configuration.outFormat,
      pieces: tiles,
      settings: { ...settingsOf(configuration), variant: variant?.id ?? noVariant },
      evidence: [
        ...fa4Evidence(configuration.architecture, format, configuration.splits),
        ...fa4FeatureEvidence(problem),
        ...(variant === null ? [] : [`variant ${variant.id}: ${variant.source}`]),
      ],
      run: (piece) => {
        const { first, rows } = forward.rowsOf(piece);
        const { out, lse, rescales, counters } = forward.runTile(piece);
        return { firstRow: first, rows, out, lse, rescales, counters: { ...counters } };
      },
    };
  },
  attribute: (problem, texts) => {
    checkKeys('fa4', settings, texts);
    checkAttributedVariant(texts);
    return attributeFa4(problem, overridesOf(texts));
  },
  arithmetic: (problem, texts) => fa4Arithmetic(problem, fa4SettingsConfiguration(problem, texts)),
  premises: fa4Premises,
  promises: fa4Promises,
  candidates: fa4Candidates,
  unlagged: { 'rescale.threshold': '0' },
  exponentials: (problem, texts) => fa4Exponentials(fa4SettingsConfiguration(problem, texts)),
  program: fa4Program(fa4SettingsConfiguration),
  backward: null,
});
