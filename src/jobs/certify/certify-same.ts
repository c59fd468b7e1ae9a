import { compareValues, findParting, type HashedRun } from '../../meaning/certify/index.js';
import { RequestError } from '../../request-error.js';
import { sourceLines } from '../../ptx/syntax/index.js';
import type { SameCertificate } from './certificate.js';
import { type FollowedRun, hashExpressions, placeOf } from './followed-run.js';

type SameOutput = SameCertificate['outputs'][number];

function bitsAt({ result }: FollowedRun, name: string, bytes: number, element: number): string {
  const { bytes: all } = result.outputs.find((output) => output.name === name)!;
  return all.subarray(element * bytes, (element + 1) * bytes).join();
}

/** Elements of the last axis, which a row has; a tensor of one axis has rows of one. */
function rowLength(shape: readonly number[]): number {
  return shape.length > 1 ? shape[shape.length - 1] : 1;
}

/** Compares an output of two runs, row by row. */
function compareOutput(
  one: FollowedRun & HashedRun,
  other: FollowedRun & HashedRun,
  name: string,
): SameOutput {
  const [here, there] = [one, other].map(({ outputs }) =>
    outputs.find(({ tensor }) => tensor === name),
  );
  if (here === undefined || there === undefined || here.values.length !== there.values.length)
    throw new RequestError(
      `${other.result.opened.path} has no output ${name} of ${here?.values.length ?? 0} elements; compare launches with the same outputs`,
    );
  const { bytes } = here.format;
  const { shape } = one.result.outputs.find((output) => output.name === name)!;
  const length = rowLength(shape);
  const rows = here.values.length / length;
  let [same, others, lost, otherWithEqualBits] = [0, 0, 0, 0];
  let first: number | null = null;
  for (let row = 0; row < rows; row++) {
    let [isOther, isLost] = [false, false];
    for (let i = row * length; i < (row + 1) * length; i++) {
      const areEqual = bitsAt(one, name, bytes, i) === bitsAt(other, name, bytes, i);
      const comparison = compareValues(one, other, [here.values[i], there.values[i]], areEqual);
      if (comparison === 'lost') isLost = true;
      if (comparison !== 'other') continue;
      isOther = true;
      first ??= i;
      if (areEqual) otherWithEqualBits++;
    }
    if (isOther) others++;
    else if (isLost) lost++;
    else same++;
  }
  const counts = { name, rows, same, other: others, lost, otherWithEqualBits };
  if (first === null) return { ...counts, parting: null };
  const parting = findParting(
    one,
    other,
    [here.values[first], there.values[first]],
    (input, element) => `${one.recorder.inputs[input].tensor}[${element}]`,
  );
  const place = ({ result }: FollowedRun, i: 0 | 1) => ({
    ...placeOf(parting.sites[i], sourceLines(result.opened.module)),
    what: parting.what[i],
  });
  return { ...counts, parting: { element: first, here: place(one, 0), there: place(other, 1) } };
}

/**
 * Compares the expressions of two followed runs, whose inputs of one name and element stand for one another.
 *
 * @throws RequestError for launches whose outputs do not correspond
 */
export function certifySame(one: FollowedRun, other: FollowedRun): SameCertificate {
  const hashed = (run: FollowedRun) => ({
    ...run,
    trace: run.recorder.trace,
    expressions: hashExpressions(run),
  });
  const [here, there] = [hashed(one), hashed(other)];
  return {
    path: other.result.opened.path,
    outputs: one.outputs.map(({ tensor }) => compareOutput(here, there, tensor)),
  };
}
