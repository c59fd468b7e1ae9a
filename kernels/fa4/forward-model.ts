import type { KernelModel, KernelSetting } from '../kernel-model.js';
import { booleanValue, checkKeys, choiceValue, numberValue } from '../setting-values.js';
import { problemShape, type Problem } from '../../src/problem.js';
import { fa4Evidence } from './evidence.js';
import type { PolynomialDegree } from './exp2.js';
import {
  fa4Configuration,
  type Fa4Architecture,
  type Fa4Configuration,
} from './forward-configuration.js';
import { createFa4Forward } from './forward.js';
import { inputFormat } from './forward-tiles.js';

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
];

/** The configuration as settings, by key. */
function settingsOf(configuration: Fa4Configuration): Record<string, string | number | boolean> {
  const { architecture, exp2, rescaleThreshold, maxOffset, lseFused, blockKeys } = configuration;
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
  };
}

function overridesOf(
  problem: Problem,
  texts: ReadonlyMap<string, string>,
): Partial<Fa4Configuration> {
  const given = <T>(key: string, parse: (key: string, text: string) => T): T | undefined => {
    const text = texts.get(key);
    return text === undefined ? undefined : parse(key, text);
  };
  const architecture = given<Fa4Architecture>('architecture', (key, text) =>
    choiceValue(key, text, ['sm_90', 'sm_100', 'sm_103'] as const),
  );
  const chosen = architecture === undefined ? {} : { architecture };
  const { exp2 } = fa4Configuration(problem, problemShape(problem), chosen);
  const rescaleThreshold = given('rescale.threshold', numberValue);
  const maxOffset = given('maxOffset', numberValue);
  const lseFused = given('lse.fused', booleanValue);
  const blockKeys = given('blockKeys', numberValue);
  return {
    ...chosen,
    exp2: {
      frequency: given('exp2.frequency', numberValue) ?? exp2.frequency,
      reserve: given('exp2.reserve', numberValue) ?? exp2.reserve,
      startFragment: given('exp2.startFragment', numberValue) ?? exp2.startFragment,
      degree: (given('exp2.degree', numberValue) ?? exp2.degree) as PolynomialDegree,
    },
    ...(rescaleThreshold === undefined ? {} : { rescaleThreshold }),
    ...(maxOffset === undefined ? {} : { maxOffset }),
    ...(lseFused === undefined ? {} : { lseFused }),
    ...(blockKeys === undefined ? {} : { blockKeys }),
  };
}

/** FlashAttention-4's forward for Blackwell, bit for bit. */
export const fa4Model: KernelModel = {
  name: 'fa4',
  description: "FlashAttention-4's forward, instruction by instruction, bit for bit",
  settings,
  prepare: (problem, texts) => {
    checkKeys('fa4', settings, texts);
    const forward = createFa4Forward(problem, { configuration: overridesOf(problem, texts) });
    const { configuration, shape, tiles } = forward;
    const format = inputFormat(problem);
    return {
      shape,
      outFormat: format,
      pieces: tiles,
      settings: settingsOf(configuration),
      evidence: fa4Evidence(configuration.architecture, format),
      run: (piece) => {
        const { first, rows } = forward.rowsOf(piece);
        const { out, lse, rescales, counters } = forward.runTile(piece);
        return { firstRow: first, rows, out, lse, rescales, counters: { ...counters } };
      },
    };
  },
};
