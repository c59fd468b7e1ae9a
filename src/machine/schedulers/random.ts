import type { Scheduler } from '../scheduler.js';
import type { Step } from '../state.js';

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Any step, at random. What has been chosen once has a priority of its own that is drawn anew from time
 * to time, so that some warps and operations stay behind for long (as in probabilistic concurrency
 * testing), which choosing evenly would hardly ever do.
 */
export function randomScheduler(seed: number): Scheduler {
  const random = randomNumbers(seed);
  const changeRate = [0.02, 0.1, 0.5, 1][seed % 4];
  let priorities = new WeakMap<Step, number>();
  return {
    name: `random, seed ${seed}`,
    choose: (steps) => {
      if (random() < changeRate / 8) priorities = new WeakMap();
      let best = 0;
      let highest = -1;
      for (let i = 0; i < steps.length; i++) {
        let priority = priorities.get(steps[i]);
        if (priority === undefined || random() < changeRate) {
          priority = random();
          priorities.set(steps[i], priority);
        }
        if (priority > highest) {
          highest = priority;
          best = i;
        }
      }
      return best;
    },
  };
}
