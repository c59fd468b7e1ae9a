import { storeProblem, type Problem, type StoredForm } from '../../../src/problem/index.js';
import { drawPages, randomValues, takesSequences, type FeatureKind } from '../../problems/index.js';
import { arrangedViolation, describeDifference, firstDifference } from '../compare-runs.js';
import { NotApplicable, type Law } from '../law.js';
import { requirePromised } from '../promised-problem.js';
import { packBatches, sequencesOf } from './sequence-problems.js';
import { indices } from '../transform-problem.js';

/** Number of forms tried of each kind. */
const formChoices = 12;

/** Sizes of pages, by choice: those of servers, those beyond a tile, and some that no server has. */
const pageSizes: readonly number[] = [16, 256, 1, 192, 64, 160, 128, 144, 2, 512, 3, 130];

/** A form in which sequences are posed, in a few words. */
interface NamedForm {
  readonly form: StoredForm;
  readonly words: string;
}

/** The forms of a choice that a kernel takes, with unused slots of every sort; choice 0 is the plainest. */
function formsOf(
  features: readonly FeatureKind[],
  sequences: number,
  choice: number,
): readonly NamedForm[] {
  const random = randomValues(choice + 1);
  const left = indices(sequences).map((index) => (index + choice) % 3);
  const packed = { kind: 'packed', spare: 1 + choice } as const;
  const padded = { kind: 'padded', spare: 1 + (choice % 3), headsFirst: choice % 2 === 0 } as const;
  const ofQueries = features.includes('packed') ? packed : padded;
  const pages = { ...drawPages(random), pageSize: pageSizes[choice % pageSizes.length] };
  const all: readonly (NamedForm & { readonly kind: FeatureKind })[] = [
    {
      kind: 'packed',
      form: { queries: packed, keys: packed },
      words: 'packed one behind the other',
    },
    {
      kind: 'padded',
      form: {
        queries: padded,
        keys: choice % 2 === 0 ? padded : { ...padded, left },
      },
      words: choice % 2 === 0 ? 'padded' : 'padded, keys in front too',
    },
    {
      kind: 'paged',
      form: { queries: ofQueries, keys: { ...pages, spare: 1 + (choice % 2) } },
      words: `in pages of ${pages.pageSize}`,
    },
  ];
  return all.filter(({ kind }) => features.includes(kind));
}

/** The problem as packed sequences, with one of the forms that are promised. */
function formOfChoice(problem: Problem, choice: number, features: readonly FeatureKind[]) {
  const packed = packBatches(problem);
  const count = sequencesOf(packed).length;
  const forms = formsOf(features, count, Math.floor(choice / 3));
  const named = forms[choice % forms.length];
  return { packed, named };
}

const notStored = ({ features }: { readonly features: readonly FeatureKind[] }) =>
  takesSequences(features) ? null : 'neither packed, padded nor paged sequences are promised';

/** Values that unused slots hold in turn, in place of 0. */
const fillings: readonly number[] = [NaN, Infinity, 1e30];

/**
 * Sequences in every promised form: the slots that no sequence uses (behind the last packed one, padding in front and
 * behind, the rest of a page and unused pages) hold 0 at first, then NaN, infinity and 1e30, saturated to the
 * format. Outputs keep their bits.
 */
export const unusedStorage: Law = {
  statement: 'What lies in slots that no sequence uses changes nothing',
  reason:
    'Caches are not cleared, and padding is memory that anything may be in: 0 · NaN is NaN, and a row behind the last is not masked by its score alone.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 3 * formChoices,
  notFor: notStored,
  violation: async ({ problem, choice }, { run, promises }) => {
    const { packed, named } = formOfChoice(problem, choice, promises.features);
    requirePromised(packed, promises);
    const clean = await run(storeProblem(packed, named.form, 0));
    for (const filling of fillings) {
      const found = await run(storeProblem(packed, named.form, filling));
      const difference = firstDifference(clean, found);
      if (difference !== null)
        return describeDifference(
          difference,
          'with zeros',
          `with ${filling} in unused slots, ${named.words}`,
        );
    }
    return null;
  },
};

/** The same sequences in two forms: both forms are right, and give the same bits where that is promised. */
export const storageForms: Law = {
  statement: 'Packed, padded and paged sequences are the same, with pages of any size in any order',
  reason:
    'Where rows lie is no part of attention. Page sizes that are wired in, tables read with a wrong stride, and a last page that is taken for full show.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: 3 * formChoices,
  notFor: notStored,
  violation: async ({ problem: given, choice }, tools) => {
    const { features } = tools.promises;
    const { packed, named } = formOfChoice(given, choice, features);
    requirePromised(packed, tools.promises);
    const [plainest] = formsOf(features, sequencesOf(packed).length, 0);
    const problem = storeProblem(packed, plainest.form);
    const transformed = storeProblem(packed, named.form);
    const words = `with its sequences ${named.words}`;
    return arrangedViolation({ problem, transformed, words }, tools);
  },
};

/**
 * Output buffers and scratch that hold NaN, infinity or 1e30 before the kernel runs, where its adapter fills them
 * as it is asked to.
 */
export const unwrittenBuffers: Law = {
  statement: 'What output buffers and scratch hold before a run changes nothing',
  reason:
    'Memory that is allocated and not cleared holds anything; rows without keys, padding and empty splits must be written all the same.',
  strengths: ['bits'],
  usual: 'bits',
  choices: fillings.length,
  notFor: ({ fillsBuffers }) =>
    fillsBuffers ? null : 'the adapter does not promise to fill its buffers',
  violation: async ({ problem, choice }, { run, promises }) => {
    if (!promises.fillsBuffers) throw new NotApplicable('the adapter does not fill its buffers');
    const filling = fillings[choice % fillings.length];
    const clean = await run(problem, { fill: 0 });
    const difference = firstDifference(clean, await run(problem, { fill: filling }));
    return (
      difference &&
      describeDifference(difference, 'with zeros', `with ${filling} in its buffers before it ran`)
    );
  },
};
