import { describe, expect } from 'vitest';
import { exp2Tunings } from '../../../kernels/index.js';
import { checkKernel, describeFailures, lawIds, modelPromises } from '../../../properties/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** Problems per law and kernel; raise it for a campaign. */
const runs = Number(process.env['CHECK_RUNS'] ?? 1);
const seed = testSeed;

/** FlashAttention-4's tuned splits of columns between polynomial and hardware, and none. */
const patterns = new Map(
  exp2Tunings.map(({ pattern }) => [Object.values(pattern).join('/'), pattern]),
);

const tunings = [...patterns].map(([name, { frequency, reserve, startFragment }]) => ({
  name: `fa4, exp2 ${name}`,
  model: 'fa4',
  settings: {
    'exp2.frequency': String(frequency),
    'exp2.reserve': String(reserve),
    'exp2.startFragment': String(startFragment),
  },
}));

const kernels = [
  { name: 'naive-fp32', model: 'naive-fp32', settings: {} },
  { name: 'naive-input', model: 'naive-input', settings: {} },
  { name: 'fa4', model: 'fa4', settings: {} },
  { name: 'fa4 on sm_90', model: 'fa4', settings: { architecture: 'sm_90' } },
  { name: 'fa4 on sm_103', model: 'fa4', settings: { architecture: 'sm_103' } },
  { name: 'fa4, always rescaling', model: 'fa4', settings: { 'rescale.threshold': '0' } },
  ...tunings,
];

describe('no law is violated by', () => {
  // A lighter run tries every law with a kernel or two; which, TEST_SEED says.
  const light = process.env['CHECK_RUNS'] === undefined;
  inTurn.each(kernels)('$name', { timeout: 3_600_000 }, async ({ name, model, settings }) => {
    const { kernel, promises } = modelPromises(model, new Map(Object.entries(settings)));
    const turn = kernels.findIndex((known) => known.name === name);
    const laws = lawIds.filter((_, i) => !light || (i + seed) % 12 === turn % 12);
    const result = await checkKernel(kernel, promises, { runs, seed: seed + turn, laws });
    expect(result.pass, describeFailures(result)).toBe(true);
    expect(result.runs).toBeGreaterThan(0);
    console.log(`${name}: ${result.runs} runs, seed ${result.seed}, no violation`);
  });
});
