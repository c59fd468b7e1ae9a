import { randomValues } from '../problems/index.js';
import { indices } from './transform-problem.js';

/**
 * An order of 0, 1, … up to `count` − 1: backwards for choice 0, else drawn at random, the same for
 * the same count and choice.
 */
export function permutation(count: number, choice: number): number[] {
  const order = indices(count).reverse();
  if (choice === 0) return order;
  const random = randomValues(Math.imul(choice, 0x9e3779b1) ^ count);
  for (let i = count - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/**
 * One of 0, 1, … up to `count` − 1 for each choice below `choices`, spread evenly: 0 for choice 0.
 */
export function spreadChoice(choice: number, choices: number, count: number): number {
  return Math.floor((choice * count) / choices);
}
