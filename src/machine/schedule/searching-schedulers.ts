import { operationKinds, type OperationKind } from '../ordering/index.js';
import type { Step } from '../state.js';
import { inOrderChoice, type Scheduler } from './scheduler.js';

/** A scheduler that takes the first step of the least rank. */
function byRank(name: string, rankOf: (step: Step) => number): Scheduler {
  return {
    name,
    choose: (steps) => {
      let best = 0;
      let least = Infinity;
      steps.forEach((step, i) => {
        const rank = rankOf(step);
        if (rank < least) [best, least] = [i, rank];
      });
      return best;
    },
  };
}

/**
 * Schedules that favour or starve one thing as far as they may: each warp last, each warp first, each
 * kind of operation as late and as early as allowed, the warps backwards, the youngest operation first.
 *
 * @param warps number of warps of a CTA
 */
export function adversarialSchedulers(warps: number): readonly Scheduler[] {
  const isWarp = (step: Step, index: number): boolean =>
    step.chosenAs === 'warp' && step.index === index;
  const kinds = Object.keys(operationKinds) as readonly OperationKind[];
  const each = Array.from({ length: warps }, (_, index) => index);
  let youngest = 0;
  return [
    ...each.map((index) => byRank(`warp ${index} last`, (step) => (isWarp(step, index) ? 1 : 0))),
    ...each.map((index) => byRank(`warp ${index} first`, (step) => (isWarp(step, index) ? 0 : 1))),
    ...kinds.map((kind) =>
      byRank(`${kind} late`, (step) =>
        step.chosenAs === 'operation' && step.kind === kind ? 1 : 0,
      ),
    ),
    ...kinds.map((kind) =>
      byRank(`${kind} early`, (step) =>
        step.chosenAs === 'operation' && step.kind === kind ? 0 : 1,
      ),
    ),
    byRank('all operations late', (step) => (step.chosenAs === 'operation' ? 1 : 0)),
    byRank('CTA 1 first', (step) =>
      (step.chosenAs === 'warp' ? step.cta.rank : step.warp.cta.rank) === 1 ? 0 : 1,
    ),
    byRank('warps backwards', (step) => (step.chosenAs === 'warp' ? -step.index : 0)),
    byRank('youngest operation first', () => --youngest),
  ];
}

/**
 * The schedule in order, but at the given decisions the next step is held back until nothing else may
 * go on; steps held back then go on in the order in which they were held back. A decision that is
 * given twice holds back two steps. With d delays in all places this is delay-bounded exploration
 * (Emmi, Qadeer, Rakamarić, "Delay-bounded scheduling", POPL 2011); with enough of them it is every
 * schedule. As data a schedule can be shrunk: the delays that remain are the ones that matter.
 */
export function delayingScheduler(delays: readonly number[]): Scheduler {
  const due = [...delays].sort((a, b) => a - b);
  const heldBack = new Set<Step>();
  let last: Step | null = null;
  let decision = 0;

  function choiceAmong(steps: readonly Step[]): number {
    if (heldBack.size >= steps.length && steps.every((step) => heldBack.has(step)))
      for (const step of heldBack) {
        const first = steps.indexOf(step);
        if (first !== -1) return first;
      }
    return inOrderChoice(steps, last, (step) => heldBack.has(step));
  }

  return {
    name: delays.length === 0 ? 'in order' : `in order, with delays at ${due.join(', ')}`,
    choose: (steps) => {
      let choice = choiceAmong(steps);
      for (; due.length > 0 && due[0] <= decision; due.shift()) {
        if (due[0] < decision) continue;
        // A step held back once more comes after all others held back.
        heldBack.delete(steps[choice]);
        heldBack.add(steps[choice]);
        choice = choiceAmong(steps);
      }
      decision++;
      last = steps[choice];
      heldBack.delete(last);
      return choice;
    },
  };
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The numbers from 0 to count − 1 in random order, the same for the same seed (Fisher and Yates). */
export function randomOrder(count: number, seed: number): number[] {
  const random = randomNumbers(seed);
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = 0; i < count; i++) {
    const at = i + Math.floor(random() * (count - i));
    [order[i], order[at]] = [order[at], order[i]];
  }
  return order;
}

/**
 * Any step, at random. Every warp or operation that has been chosen once has a priority of its own,
 * redrawn from time to time, so that some warps and operations stay behind for long (as in
 * probabilistic concurrency testing), which uniform choices would hardly ever cause.
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
