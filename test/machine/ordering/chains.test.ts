import { expect, it } from 'vitest';
import {
  createChains,
  createClock,
  includeInClock,
  tickClock,
} from '../../../src/machine/ordering/index.js';

it('reuses the chain of an operation that is known to be complete', () => {
  const chains = createChains();
  const warp = chains.createAgent();
  const clock = createClock();
  tickClock(clock, warp);
  const first = chains.begin(clock);
  const second = chains.begin(clock);
  expect(new Set([warp, first.chain, second.chain]).size).toBe(3);
  includeInClock(clock, second.chain, second.time);
  expect(chains.begin(clock)).toEqual({ chain: second.chain, time: second.time + 1 });
  expect(chains.begin(clock).chain).not.toBe(second.chain);
});

it('needs as many chains as a pipeline has stages, however long it runs', () => {
  const chains = createChains();
  const warp = chains.createAgent();
  const clock = createClock();
  const stages = 7;
  const inFlight = [];
  for (let round = 0; round < 1000; round++) {
    if (inFlight.length === stages) {
      const oldest = inFlight.shift()!;
      includeInClock(clock, oldest.chain, oldest.time);
    }
    inFlight.push(chains.begin(clock));
  }
  expect(warp).toBe(0);
  expect(chains.count).toBe(1 + stages);
});
