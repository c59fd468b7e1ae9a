import { compareValues, findParting, type HashedRun } from '../../meaning/certify/index.js';
import { RequestError } from '../../request-error.js';
import { givenPlaces, type PlacedInput } from '../launch/contract-places.js';
import type { SameCertificate, SameOutput } from './certificate.js';
import { type FollowedRun, hashExpressions, placesOf } from './followed-run.js';
import { namesByContents, namesByTensor } from './input-names.js';
import { readContents } from './row-contents.js';
import {
  type KnownRows,
  pairByContents,
  type PairedRows,
  pairInOrder,
  pairedQuantities,
} from './row-pairs.js';
import type { ToldRun } from './told-contract.js';

type Compared = FollowedRun & HashedRun;

function bitsAt({ result }: FollowedRun, name: string, bytes: number, element: number): string {
  const { bytes: all } = result.outputs.find((output) => output.name === name)!;
  return all.subarray(element * bytes, (element + 1) * bytes).join();
}

function outputOf({ outputs }: FollowedRun, name: string) {
  return outputs.find(({ tensor }) => tensor === name);
}

/** Compares an output of two runs, row by row. */
function compareOutput(
  one: Compared,
  other: Compared,
  [name, otherName]: readonly [string, string],
  { pairs, unpaired }: PairedRows,
): SameOutput {
  const [here, there] = [outputOf(one, name)!, outputOf(other, otherName)!];
  const { bytes } = here.format;
  let [same, others, lost, otherWithEqualBits] = [0, 0, 0, 0];
  let first: readonly [number, number] | null = null;
  let hasOtherBits = false;
  for (const pair of pairs) {
    let [isOther, isLost] = [false, false];
    for (const [i, x] of pair.here.entries()) {
      const y = pair.there[i];
      const areEqual = bitsAt(one, name, bytes, x) === bitsAt(other, otherName, bytes, y);
      const comparison = compareValues(one, other, [here.values[x], there.values[y]], areEqual);
      if (comparison === 'lost') isLost = true;
      if (comparison !== 'other') continue;
      isOther = true;
      if (areEqual) otherWithEqualBits++;
      // The first whose bits differ, if any do: where it parts explains them.
      if (first !== null && (areEqual || hasOtherBits)) continue;
      [first, hasOtherBits] = [[x, y], !areEqual];
    }
    if (isOther) others++;
    else if (isLost) lost++;
    else same++;
  }
  const counts = { name, rows: pairs.length, unpaired, same, other: others, lost };
  const parting =
    first && partingOf(one, other, first, [here.values[first[0]], there.values[first[1]]]);
  return { ...counts, otherWithEqualBits, parting };
}

function partingOf(
  one: Compared,
  other: Compared,
  [element, otherElement]: readonly [number, number],
  values: readonly [number, number],
): SameOutput['parting'] {
  const parting = findParting(one, other, values);
  const place = (run: FollowedRun, i: 0 | 1) => ({
    ...placesOf(run)(parting.sites[i]),
    what: parting.what[i],
  });
  return { element, otherElement, here: place(one, 0), there: place(other, 1) };
}

/** The rows of an output by their order, and the output's name in the other run. */
function inOrder(one: FollowedRun, other: FollowedRun, name: string): PairedRows {
  const [here, there] = [outputOf(one, name)!, outputOf(other, name)];
  if (there?.values.length !== here.values.length)
    throw new RequestError(
      `${other.result.opened.path} has no output ${name} of ${here.values.length} elements; compare launches with the same outputs`,
    );
  return pairInOrder(one.result.outputs.find((output) => output.name === name)!.shape);
}

function hashed(
  { run }: ToldRun,
  known: (KnownRows & { readonly places: readonly PlacedInput[] }) | null,
): Compared {
  const { inputs, trace } = run.recorder;
  const names =
    known === null ? namesByTensor(inputs) : namesByContents(inputs, known.places, known.contents);
  return { ...run, trace, expressions: hashExpressions(run, names), describeInput: names.describe };
}

/** The rows of a run by what they are asked. */
function knownRows({ run, told }: ToldRun) {
  if (told?.kind !== 'attention') return null;
  const { contract } = told;
  const places = [...told.places, ...givenPlaces(contract)];
  const contents = readContents(contract.problem, places, run.result.opened.tensors);
  return { contract, places, contents };
}

/**
 * Compares the expressions of two followed runs. Where both say what their tensors are, rows of the same query, keys and values
 * stand for one another, and so do their inputs; else inputs of one name and element do.
 *
 * @throws RequestError for launches whose outputs do not correspond
 */
export function certifySame(one: ToldRun, other: ToldRun): SameCertificate {
  const known = [one, other].map(knownRows);
  const [here, there] = known.includes(null) ? [null, null] : known;
  const [left, right] = [hashed(one, here), hashed(other, there)];
  return {
    path: other.run.result.opened.path,
    outputs: one.run.outputs.map(({ tensor }) => {
      const quantity = here?.contract.outputs.find((output) => output.tensor === tensor)?.name;
      const counterpart = there?.contract.outputs.find(({ name }) => name === quantity);
      const isOfRows = quantity !== undefined && pairedQuantities.includes(quantity);
      if (here === null || there === null || counterpart === undefined || !isOfRows)
        return compareOutput(left, right, [tensor, tensor], inOrder(one.run, other.run, tensor));
      const pairs = pairByContents(here, there, quantity);
      return compareOutput(left, right, [tensor, counterpart.tensor], pairs);
    }),
  };
}
