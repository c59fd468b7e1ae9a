import { describe, expect, it } from 'vitest';
import {
  checkRecurrentKernel,
  drawRecurrence,
  planRecurrentCheck,
  plainRecurrence,
  poseRecurrence,
  recurrentLawIds,
  recurrentRegimeNames,
  type RecurrentKernel,
  type RecurrentLawId,
  type RecurrentPromises,
} from '../../../properties/recurrent/index.js';
import { applicableFaults, mamba2Faults } from '../../../kernels/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { faultyKernel, modelKernel } from './models.js';

const inTurn = turns(import.meta.url);
const ofMamba2: RecurrentPromises = {
  families: ['mamba2'],
  formats: ['bf16', 'fp32'],
  chunk: 16,
  gradients: true,
  deterministic: true,
};

async function statuses(kernel: RecurrentKernel, promises: RecurrentPromises, options: object) {
  const { laws } = await checkRecurrentKernel(kernel, promises, {
    seed: testSeed,
    shrinkSeconds: 0,
    ...options,
  });
  return laws;
}

describe('laws of Mamba-2', () => {
  const planned = planRecurrentCheck(ofMamba2).laws.filter(({ skipped }) => skipped === null);

  it('are those of a recurrence that speak of it, and its own', () => {
    const names = planned.map(({ id }) => id);
    expect(names).toEqual(expect.arrayContaining(['zero-step', 'long-step', 'skip-alone']));
    const others: RecurrentLawId[] = [
      ...([
        'zero-strength',
        'forgetting',
        'overwriting',
        'neutral-gates',
        'configurations',
      ] as const),
    ];
    expect(recurrentLawIds.filter((id) => !names.includes(id))).toEqual(others);
  });

  inTurn.each(['naive-recurrent', 'chunked'] as const)(
    'hold of a model, in every regime that it has: %s',
    { timeout: 600_000 },
    async (name) => {
      const kernel = modelKernel(name, name === 'chunked' ? { chunk: 16 } : {});
      for (const law of await statuses(kernel, ofMamba2, { runs: 3 }))
        if (planned.some(({ id }) => id === law.id))
          expect({ id: law.id, status: law.status, failure: law.failure?.statement }).toEqual({
            id: law.id,
            status: 'holds',
          });
    },
  );

  inTurn.each(mamba2Faults.filter(({ isOfGradients }) => !isOfGradients).map(({ id }) => id))(
    'do not hold of a kernel with the fault %s',
    { timeout: 300_000 },
    async (id) => {
      const laws = await statuses(faultyKernel('naive-recurrent', id), ofMamba2, {
        laws: ['within-bound'],
        runs: 40,
        regimes: ['typical', 'long-steps'],
      });
      expect(laws[0].status).toBe('violated');
    },
  );
});

describe('problems of Mamba-2', () => {
  const constraints = {
    ...planRecurrentCheck(ofMamba2).promises,
    formats: ['bf16'] as const,
    gradients: false,
  };

  it('are drawn in each regime but that of gates of −∞, and read back the same', () => {
    const { laws } = planRecurrentCheck(ofMamba2, { laws: ['within-bound'] });
    expect(recurrentRegimeNames.filter((name) => !laws[0].regimes.includes(name))).toEqual([
      ...['forgetting', 'no-strength', 'full-strength', 'double-strength'],
    ]);
    for (const regime of laws[0].regimes)
      for (let seed = 0; seed < 4; seed++) {
        const plain = drawRecurrence(constraints, regime, testSeed + seed);
        expect(plain.steps).not.toBeNull();
        expect(plainRecurrence(poseRecurrence(plain))).toEqual(plain);
      }
  });

  it('have, between them, each input that may be left out', () => {
    const drawn = Array.from({ length: 40 }, (_, seed) =>
      drawRecurrence(constraints, 'one-token', seed),
    );
    for (const name of ['D', 'z', 'dt_bias', 'initial_state'] as const) {
      expect(drawn.some(({ inputs }) => inputs[name] !== undefined)).toBe(true);
      expect(drawn.some(({ inputs }) => inputs[name] === undefined)).toBe(true);
    }
    const found = new Set(
      drawn.flatMap((plain) => {
        const { problem } = poseRecurrence(plain);
        return applicableFaults({ problem, chunk: 16 }).map(({ id }) => id);
      }),
    );
    expect(found).toContain('softplus-missing');
    expect(found).toContain('softplus-twice');
  });
});
