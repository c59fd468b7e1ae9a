import { problemShape, rowPlaces, type Problem } from '../../src/problem/index.js';
import { indices, NotApplicable, permutation } from '../laws/index.js';
import { usualLimits } from './dimensions.js';
import { pagedForm, posed } from './posed-form.js';
import { packedProblem, type Scene, type Surroundings } from './scene.js';

/** The rows of a whole problem. */
function placeAmong(problem: Problem): Surroundings['place'] {
  const place = rowPlaces(problem, problemShape(problem));
  return (row) => {
    const { sequence, head, query } = place(row.head, row.query);
    return { sequence, head, query };
  };
}

/** The problem as it was given, again and again. */
export function runsOf({ problem }: Scene, count: number): Surroundings {
  return {
    values: indices(count, 1),
    make: () => ({ problem, rows: {} }),
    place: placeAmong(problem),
  };
}

/** The problem in each number of splits that the kernel takes. */
export function splitNumbers({ problem, promises }: Scene): Surroundings {
  const counts = promises.splits?.counts ?? [];
  if (counts.length === 0) throw new NotApplicable('no kernel with splits is promised');
  return {
    values: [...new Set(counts)].sort((a, b) => a - b),
    make: (splits) => ({ problem, rows: {}, splits }),
    place: placeAmong(problem),
  };
}

/** The problem with its keys in pages, in the form in which it was posed. @throws NotApplicable where none are taken */
function pagedProblem(scene: Scene) {
  const { features } = scene.promises;
  if (!features.includes('paged')) throw new NotApplicable('paged keys are not promised');
  const problem = packedProblem(scene);
  const queries = features.includes('packed') ? 'packed' : 'padded';
  return { problem, form: pagedForm(scene.form, queries), place: placeAmong(problem) };
}

/** The problem with pages of every power of two of keys, and with its own. */
export function pageSizes(scene: Scene): Surroundings {
  const { problem, form, place } = pagedProblem(scene);
  const { keys } = form;
  const most = scene.limits['page-size'] ?? usualLimits['page-size'];
  const powers = indices(32)
    .map((exponent) => 2 ** exponent)
    .filter((size) => size <= most);
  return {
    values: [...new Set([...powers, keys.pageSize])].sort((a, b) => a - b),
    make: (pageSize) => ({
      problem: posed(problem, { ...form, keys: { ...keys, pageSize } }),
      rows: {},
    }),
    place,
  };
}

/** An order of pages, by value: in order, the first two swapped, backwards, then shuffled. */
function orderOf(pages: number, value: number): number[] {
  if (value === 0) return indices(pages);
  if (value === 1) return [1, 0, ...indices(pages - 2, 2)];
  return permutation(pages, value - 2);
}

/** The problem with its pages in other orders. @throws NotApplicable where it has one page */
export function pageOrders(scene: Scene): Surroundings {
  const { problem, form, place } = pagedProblem(scene);
  const { keys } = form;
  const { pageSize } = keys;
  const lengths = (problem.sequences ?? []).map((sequence) => sequence.keys);
  const pages = lengths.reduce((sum, length) => sum + Math.ceil(length / pageSize), 0);
  if (pages < 2) throw new NotApplicable(`its keys fill one page of ${pageSize}`);
  const arranged = (value: number) => ({
    ...form,
    keys: { ...keys, arrange: (count: number) => orderOf(count, value) },
  });
  return {
    values: indices((scene.limits['page-order'] ?? usualLimits['page-order']) + 1),
    make: (value) => ({ problem: posed(problem, arranged(value)), rows: {} }),
    place,
  };
}
