import type { Problem } from '../../../src/problem/index.js';
import { takesSequences } from '../../problems/index.js';
import { arrangedViolation, type ArrangedProblems } from '../compare-runs.js';
import { NotApplicable, type Law, type LawCase } from '../law.js';
import type { ProblemPromises } from '../kernel-under-test.js';
import { requirePromised } from '../promised-problem.js';
import {
  loneDocument,
  loneSequence,
  packBatches,
  pickSequences,
  sequencesOf,
  type LoneSequence,
} from './sequence-problems.js';
import { indices, permutation, spreadChoice } from '../transform-problem.js';

/** Sequences that are tried of each form. */
const sequenceChoices = 8;

/** Two problems; the rows of the second are rows of the first. */
interface SequenceForm {
  readonly problem: Problem;
  readonly lone: LoneSequence;
  readonly words: string;
}

type FormMaker = (
  problem: Problem,
  choice: number,
  promises: ProblemPromises,
) => SequenceForm | null;

/** The sequence that a choice selects among those with a query; null where there is none. */
function chosenSequence(problem: Problem, choice: number): number | null {
  const sequences = sequencesOf(problem);
  const fitting = indices(sequences.length).filter((index) => sequences[index].queries > 0);
  return fitting.length === 0
    ? null
    : fitting[spreadChoice(choice, sequenceChoices, fitting.length)];
}

/** A sequence or a batch among the others, and by itself. */
const alone: FormMaker = (problem, choice) => {
  const index = chosenSequence(problem, choice);
  if (index === null || (sequencesOf(problem).length === 1 && problem.sequences === undefined))
    return null;
  return { problem, lone: loneSequence(problem, index), words: `with sequence ${index} alone` };
};

/** A sequence packed among the others in another order and with others twice, and by itself. */
const amongOthers: FormMaker = (problem, choice, { features }) => {
  if (!takesSequences(features)) return null;
  const packed = packBatches(problem);
  const count = sequencesOf(packed).length;
  if (count === 0) return null;
  const order = [...permutation(count, choice), ...(choice % 2 === 0 ? [] : [choice % count])];
  const mixed = pickSequences(packed, order);
  const index = chosenSequence(mixed, choice);
  return index === null
    ? null
    : {
        problem: mixed,
        lone: loneSequence(mixed, index),
        words: `with sequence ${index} of the ${order.length} packed ones alone`,
      };
};

/** A document, and the problem that it is. */
const document: FormMaker = (problem, choice) => {
  const { segments } = problem;
  if (segments === undefined) return null;
  const ids = [...new Set(segments.queries.data)];
  const segment = ids[spreadChoice(choice, sequenceChoices, ids.length)];
  if (segment === undefined) return null;
  const lone = loneDocument(problem, segment);
  return { problem, lone, words: `with document ${segment} alone` };
};

const forms: readonly FormMaker[] = [alone, amongOthers, document];

/** Choices of sequences and of their surroundings. */
export const sequenceFormChoices = forms.length * sequenceChoices;

/**
 * A problem, and one of its sequences alone.
 * @throws NotApplicable where it has one sequence alone, or one of the two is not promised
 */
export function arrangeSequence(
  { problem: given, choice }: LawCase,
  promises: ProblemPromises,
): ArrangedProblems {
  const form = forms[choice % forms.length];
  const made = form(given, Math.floor(choice / forms.length), promises);
  if (made === null) throw new NotApplicable('the problem has one sequence alone');
  const { problem, lone, words } = made;
  requirePromised(problem, promises);
  requirePromised(lone.alone, promises);
  return { problem, transformed: lone.alone, rows: lone.rows, words };
}

/**
 * A batch or a packed sequence by itself, one among sequences in another order and with one of them twice, and a
 * document by itself. Its rows are those that it has among the others: kernels choose splits and tiles by all of a
 * batch, so that only some promise bits.
 */
export const sequencesAlone: Law = {
  statement: 'A sequence, a batch or a document alone gives what it gives among others',
  reason:
    'Each is a problem of its own. Boundaries that are off by a row, lengths of a neighbour and splits that are chosen by the whole batch show.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: sequenceFormChoices,
  violation: async (lawCase, tools) =>
    arrangedViolation(arrangeSequence(lawCase, tools.promises), tools),
};
