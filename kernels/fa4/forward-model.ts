import { exp2ApproxFtz } from '../../src/hardware/index.js';
import {
  problemFeatures,
  problemShape,
  type FeatureName,
  type Problem,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { KernelArithmetic } from '../arithmetic.js';
import { kernelModel } from '../kernel-features.js';
import type { KernelExponential, KernelModel } from '../kernel-model.js';
import { checkUnsplit, recipeArithmetic } from '../online-softmax/arithmetic.js';
import { exp2Polynomial, polynomialErrors } from '../online-softmax/exp2-polynomial.js';
import { preparedForward } from '../online-softmax/lumped-model.js';
import type { PremiseDeclaration } from '../promises.js';
import { checkKeys } from '../setting-values.js';
import type { AttributedKernel } from '../techniques.js';
import { attributedFa4Kernel, checkAttributedVariant } from './attributed.js';
import { fa4Backward } from './backward/model.js';
import {
  fa4Configuration,
  type Fa4Configuration,
  type Fa4Format,
  type Fa4Overrides,
} from './configuration.js';
import { fa4Candidates, fa4Evidence, fa4Promises } from './declarations.js';
import { fragmentColumns, polynomialShare } from './exp2-tuning.js';
import { fa4Features } from './features.js';
import { fa4Recipe, tileSetting } from './recipe.js';
import {
  fa4SettingsConfiguration,
  forwardSettings,
  overridesOf,
  settingsForward,
  settingsOf,
} from './settings.js';
import { noVariant } from './variants/index.js';

/**
 * The arithmetic of FlashAttention-4's forward in the configuration that it would run the problem in,
 * with the choices of `overrides`. It follows from the recipe.
 * @throws RequestError for a problem that the kernel does not take and a configuration out of range.
 */
export function fa4Arithmetic(
  problem: Problem,
  overrides: Partial<Fa4Configuration> = {},
): KernelArithmetic {
  const configuration = fa4Configuration(problem, problemShape(problem), overrides);
  const { rescaleThreshold, architecture } = configuration;
  checkUnsplit(configuration.splits);
  for (const [name, value] of Object.entries(configuration.descale))
    if (value !== 1)
      throw new RequestError(
        `descale.${name} is ${value}; bounds are for the inputs as they are: leave it at 1`,
      );
  return recipeArithmetic(
    fa4Recipe(tileSetting(problem, configuration), problem.scale),
    `fa4 (${architecture}, rescale threshold ${rescaleThreshold})`,
  );
}

/** Declarations of the model beside its arithmetic: an exponential less accurate than any kernel's may be. */
function fa4Premises(settings: ReadonlyMap<string, string>): PremiseDeclaration {
  const degree = settings.get('exp2.degree') ?? '3';
  const known = Object.entries(polynomialErrors).find(([name]) => name === degree);
  // Degrees from 3 on are as accurate as any kernel's.
  return known === undefined || known[1].largest <= 2 ** -13.4
    ? {}
    : { exponential: known[1].largest };
}

/** A function of fp32 bits as one of fp32 numbers. */
function float32Function(ofBits: (bits: number) => number): (x: number) => number {
  const float = new Float32Array(1);
  const word = new Uint32Array(float.buffer);
  return (x) => {
    float[0] = x;
    word[0] = ofBits(word[0]);
    return float[0];
  };
}

/** The ways in which a configuration computes 2^x; the polynomial, if it has one, first. */
function fa4Exponentials({ exp2, blockKeys }: Fa4Configuration): KernelExponential[] {
  const share = polynomialShare(exp2, blockKeys / fragmentColumns);
  const unit: KernelExponential = {
    name: 'ex2.approx.ftz.f32',
    place: 'The special function unit',
    share: 1 - share,
    exp2: float32Function(exp2ApproxFtz),
  };
  if (share === 0) return [unit];
  const polynomial: KernelExponential = {
    name: `Polynomial of degree ${exp2.degree}`,
    place: 'In software',
    share,
    exp2: (x) => exp2Polynomial(x, exp2.degree),
  };
  return [polynomial, unit];
}

const compiled = 'the bits of the kernel compiled for sm_100a; no GPU was compared';
const maskMod = `a mask of its own, every block visited: ${compiled}`;
const softcap = `softcap, by tanh.approx: ${compiled}`;

/** Evidence for each feature, beside that for all problems. */
const evidence: Readonly<Partial<Record<FeatureName, string>>> = {
  mask: maskMod,
  keyLists: 'lists of keys as a mask of its own, every block visited: not compared with anything',
  segments: maskMod,
  prefix: maskMod,
  bias: `bias as a score_mod: ${compiled}`,
  alibiSlopes: `ALiBi as a score_mod: ${compiled}, and the assembler may contract`,
  sink: `sink: ${compiled}`,
  blockMask: `order of the listed blocks: ${compiled}`,
  sequences: `tiles and tuning of packed sequences: ${compiled}`,
};

/** Evidence for the bits of FlashAttention-4's forward with a problem's features, a line each. */
function fa4FeatureEvidence(problem: Problem): string[] {
  const ofFeatures = problemFeatures(problem).flatMap((name) => evidence[name] ?? []);
  const capped = problem.softcap === null ? [] : [softcap];
  return [...new Set([...capped, ...ofFeatures])];
}

/**
 * The forward on a problem with techniques that can be emulated or exact.
 *
 * @param overrides choices that differ from FlashAttention-4's for this problem
 * @throws RequestError as `createAttributedForward`
 */
export function attributeFa4(problem: Problem, overrides: Fa4Overrides = {}): AttributedKernel {
  return attributedFa4Kernel(problem, overrides, settingsOf);
}

/** FlashAttention-4's forward for Blackwell, bit for bit. */
export const fa4Model: KernelModel = kernelModel({
  name: 'fa4',
  description: "FlashAttention-4's forward, instruction by instruction, bit for bit",
  settings: forwardSettings,
  features: fa4Features,
  emulated: ['scales'],
  prepare: (problem, texts) => {
    const { forward, variant } = settingsForward(problem, texts);
    const { configuration, shape } = forward;
    const format = problem.q.format as Fa4Format;
    return preparedForward(forward, {
      shape,
      outFormat: configuration.outFormat,
      settings: { ...settingsOf(configuration), variant: variant?.id ?? noVariant },
      evidence: [
        ...fa4Evidence(configuration.architecture, format, configuration.splits),
        ...fa4FeatureEvidence(problem),
        ...(variant === null ? [] : [`variant ${variant.id}: ${variant.source}`]),
      ],
    });
  },
  attribute: (problem, texts) => {
    checkKeys('fa4', forwardSettings, texts);
    checkAttributedVariant(texts);
    return attributeFa4(problem, overridesOf(texts));
  },
  arithmetic: (problem, texts) => fa4Arithmetic(problem, fa4SettingsConfiguration(problem, texts)),
  premises: fa4Premises,
  promises: fa4Promises,
  candidates: fa4Candidates,
  unlagged: { 'rescale.threshold': '0' },
  exponentials: (problem, texts) => fa4Exponentials(fa4SettingsConfiguration(problem, texts)),
  program: async () => {
    const { fa4Program } = await import('./machine-program.js');
    return fa4Program(fa4SettingsConfiguration);
  },
  backward: fa4Backward,
});
