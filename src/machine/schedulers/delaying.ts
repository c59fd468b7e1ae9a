import type { Scheduler } from '../scheduler.js';
import type { Step } from '../state.js';
import { inOrderChoice } from './in-order.js';

/**
 * The schedule in order, but at the decisions given what would come next is held back until nothing
 * else may go on, and then goes on in the order in which it was held back; a decision that is given
 * twice holds back two things. With d delays in all places this is delay-bounded exploration (Emmi,
 * Qadeer, Rakamarić, "Delay-bounded scheduling", POPL 2011); with enough of them it is every schedule.
 * As data a schedule can be shrunk: the delays that are left are what matters about it.
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
        // What is held back once more comes after all that is held back.
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
