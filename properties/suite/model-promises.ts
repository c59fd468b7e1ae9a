import {
  fa4Formats,
  findKernelModel,
  runKernelModel,
  type Fa4Format,
} from '../../kernels/index.js';
import { judgedArithmetic, modelPremises, type KernelArithmetic } from '../../src/audit/index.js';
import type { Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import { scaleKinds } from '../problems/index.js';
import type { AttentionOutputs } from '../match-attention.js';
import { UnsupportedProblem, type AttentionKernel } from './attention-kernel.js';
import type { KernelConfiguration, KernelPromises } from './promises.js';

/** Values as text, by key, as a kernel model takes them. */
type Settings = ReadonlyMap<string, string>;

/** A kernel model as a kernel under test, with what it promises. */
export interface ModelUnderTest {
  readonly kernel: AttentionKernel;
  readonly promises: KernelPromises;
}

/** How a model computes on a problem; null where nothing is known, as of splits. */
function arithmeticOf(
  model: string,
  settings: Settings,
): (problem: Problem) => KernelArithmetic | null {
  return (problem) => {
    try {
      return judgedArithmetic(model, problem, settings);
    } catch (error) {
      // The model runs there, or its run says why not.
      if (error instanceof RequestError) return null;
      throw error;
    }
  };
}

/** @throws UnsupportedProblem for a problem that the model does not take */
function runModel(model: string, problem: Problem, settings: Settings): AttentionOutputs {
  try {
    return runKernelModel(model, problem, settings);
  } catch (error) {
    if (error instanceof RequestError) throw new UnsupportedProblem(error.message);
    throw error;
  }
}

function underSettings(model: string, settings: Settings): Required<KernelConfiguration> {
  return {
    kernel: (problem) => runModel(model, problem, settings),
    arithmetic: arithmeticOf(model, settings),
  };
}

/** Settings of fa4 that change its bits and must not harm. */
const fa4Configurations: readonly (readonly [string, string])[] = [
  ['rescale.threshold', '0'],
  ['rescale.threshold', '0.5'],
  ['exp2.frequency', '0'],
  ['exp2.degree', '5'],
  ['lse.fused', 'true'],
  ['blockKeys', '64'],
  ['splits', '2'],
  ['splits', '5'],
  ['architecture', 'sm_90'],
  ['architecture', 'sm_103'],
];

/** Laws that every model obeys to the last bit, though not every kernel does. */
const exactLaws = {
  'query-order': 'bits',
  'grouped-heads': 'bits',
  'weights-sum-to-one': 'bits',
} as const;

/**
 * From 128 on the split of columns between polynomial and hardware depends on masks and lengths, so
 * that the bits of a row do too, unless it is set.
 */
const largestUntunedDim = 112;
const tuningKeys: readonly string[] = ['exp2.frequency', 'exp2.reserve', 'exp2.startFragment'];

function fa4Promises(settings: Settings): KernelPromises {
  const isTuned = tuningKeys.every((key) => settings.has(key));
  const threshold = settings.get('rescale.threshold');
  const configurations = fa4Configurations
    .filter(([key]) => !settings.has(key))
    .map(
      ([key, value]) =>
        [`${key}=${value}`, underSettings('fa4', new Map([...settings, [key, value]]))] as const,
    );
  return {
    formats: Object.keys(fa4Formats) as Fa4Format[],
    // The maximum is that of the raw scores.
    scales: ['default', 'odd'],
    sizes: { qkDim: { max: isTuned ? 256 : largestUntunedDim }, vDim: { max: 256 } },
    laws: {
      ...exactLaws,
      'decode-equals-prefill': 'bits',
      'causal-is-window': 'bits',
      'exact-exp2': 'bits',
    },
    lse: true,
    blockKeys: Number(settings.get('blockKeys') ?? 128),
    rescaleThreshold:
      threshold === undefined ? fa4Formats.bf16.rescaleThreshold : finiteOr(threshold, 8),
    configurations: Object.fromEntries(configurations),
  };
}

/** The number of a text, unless it is none or infinite. */
function finiteOr(text: string, otherwise: number): number {
  const value = Number(text);
  return Number.isFinite(value) && value > 0 ? value : otherwise;
}

const naivePromises: KernelPromises = {
  formats: ['fp32', 'bf16', 'fp16', 'e4m3', 'e5m2'],
  softcap: true,
  specialValues: true,
  laws: exactLaws,
  scales: scaleKinds,
  lse: true,
};

/** What each model promises. */
const promisesOf: Readonly<Record<string, (settings: Settings) => KernelPromises>> = {
  fa4: fa4Promises,
  'naive-fp32': () => naivePromises,
  'naive-input': () => ({
    ...naivePromises,
    formats: ['fp32', 'bf16', 'fp16'],
    // Scores are kept in the input's format, and fp16 ends at 65504.
    scoreLimit: { raw: 2 ** 15, scaled: 2 ** 15 },
  }),
};

/**
 * A kernel model as a kernel under test: its run on one thread, judged by its own arithmetic, and its
 * promises.
 * @param settings as of `KernelModel.prepare`; a variant among them is a bug, of which promises and
 * bounds know nothing
 * @throws RequestError for an unknown model
 */
export function modelPromises(model: string, settings: Settings = new Map()): ModelUnderTest {
  const { name } = findKernelModel(model);
  return {
    kernel: underSettings(name, settings).kernel,
    promises: {
      ...promisesOf[name](settings),
      arithmetic: arithmeticOf(name, settings),
      premises: modelPremises(name, settings),
    },
  };
}
