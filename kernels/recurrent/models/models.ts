import type { FormatName } from '../../../src/formats/index.js';
import {
  recurrentFamilies,
  type RecurrentProblem,
  type RecurrentQuantityName,
} from '../../../src/problem/index.js';
import type { KernelSetting } from '../../setting-values.js';
import {
  recurrentOperands,
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentValue,
} from '../arithmetic.js';

/** Choices of a model's user. */
export interface RecurrentModelSettings {
  /** Tokens of a chunk; default 64. */
  readonly chunk?: number | undefined;
  readonly inverse?: RecurrentArithmetic['inverse'] | undefined;
  /** Formats that differ from the model's own. */
  readonly formats?: Readonly<Partial<Record<RecurrentValue, FormatName>>> | undefined;
}

/** A model of kernels of linear attention. */
export interface RecurrentModel {
  readonly name: string;
  readonly description: string;
  /** What a user may choose, by the keys of texts. */
  readonly settings: readonly KernelSetting[];
  /** Other settings in which it must be right too. */
  readonly configurations: readonly Readonly<Record<string, string>>[];
  /** Its arithmetic for a problem. */
  readonly arithmetic: (
    problem: RecurrentProblem,
    settings?: RecurrentModelSettings,
  ) => RecurrentArithmetic;
}

/** Formats of all values: `name` but for those given. */
function formatsOf(
  name: FormatName,
  others: RecurrentModelSettings['formats'],
): RecurrentArithmetic['formats'] {
  const chosen = recurrentValues.map((value) => [value, others?.[value] ?? name]);
  return Object.fromEntries(chosen) as RecurrentArithmetic['formats'];
}

/** The formats of a kernel's results: gradients in those of their inputs, those of gates and states in fp32. */
function outputsOf({ q, k, v, beta, mamba2 }: RecurrentProblem): RecurrentArithmetic['outputs'] {
  const outputs: Partial<Record<RecurrentQuantityName, FormatName>> = {
    out: v.format,
    dq: q.format,
    dk: k.format,
    dv: v.format,
    ...(beta && { dbeta: beta.format }),
    ...(mamba2 && { ddt: mamba2.dt.format }),
  };
  return outputs;
}

const stateSetting: KernelSetting = {
  key: 'state',
  description: 'the format of the state: fp32 (default), bf16, fp16',
};

/**
 * Kernels of linear attention as flash-linear-attention (https://github.com/fla-org/flash-linear-attention, MIT) has them, in the formats that its
 * kernels name.
 */
export const recurrentModels: readonly RecurrentModel[] = [
  {
    name: 'naive-recurrent',
    description: 'token by token, with a state and everything beside it in fp32',
    settings: [stateSetting],
    configurations: [],
    arithmetic: (problem, { formats } = {}) => ({
      form: 'recurrent',
      chunk: 1,
      inverse: 'substitution',
      ...(recurrentFamilies[problem.family].write === 'delta' && { valueBlock: 32 }),
      // The gradients of delta writes read what was written again, stored as values are.
      formats: formatsOf('fp32', { 'stored-write': problem.v.format, ...formats }),
      outputs: outputsOf(problem),
    }),
  },
  {
    name: 'chunked',
    description: 'in chunks of tokens: a state in fp32, operands of products in the format of v',
    settings: [
      { key: 'chunk', description: 'tokens of a chunk: 1 to 1024 (default 64)' },
      {
        key: 'inverse',
        description: 'how I + A is inverted: substitution, or rows of a block (default 16)',
      },
      stateSetting,
    ],
    configurations: [
      { chunk: '16' },
      { chunk: '32' },
      { chunk: '128' },
      { inverse: 'substitution' },
    ],
    arithmetic(problem, { chunk = 64, inverse = { block: 16 }, formats } = {}) {
      const ofInputs = Object.fromEntries(
        recurrentOperands.map((value) => [value, problem.v.format]),
      );
      // Gradients within a chunk of decays by key dimension are products of fp32 operands, which tensor cores cut to tf32.
      if (recurrentFamilies[problem.family].decay === 'by-key-dimension')
        for (const value of ['intra-gradient', 'decayed-operand']) ofInputs[value] = 'tf32';
      return {
        form: 'chunked',
        chunk,
        inverse,
        formats: formatsOf('fp32', { ...ofInputs, ...formats }),
        outputs: outputsOf(problem),
      };
    },
  },
];

/** The model of a name; undefined for none. */
export function findRecurrentModel(name: string): RecurrentModel | undefined {
  return recurrentModels.find((model) => model.name === name);
}
