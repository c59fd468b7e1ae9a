import { operandBugs } from './operand-bugs.js';
import { outputBugs } from './output-bugs.js';
import type { PlantedBug } from './planted-bug.js';
import { rowBugs } from './row-bugs.js';
import { scoreBugs } from './score-bugs.js';

export type { PlantedBug } from './planted-bug.js';
export { plantedProblem, plantedProblems, type PlantedProblem } from './problems.js';

/** Bugs of a backward pass, by what they do. */
export const plantedBugs: Readonly<Record<string, PlantedBug>> = {
  ...rowBugs,
  ...scoreBugs,
  ...operandBugs,
  ...outputBugs,
};
