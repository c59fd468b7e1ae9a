import {
  cacheName,
  storedOf,
  storeProblem,
  type Problem,
  type StoredForm,
  type StoredRows,
} from '../../src/problem/index.js';

/** Keys of a page where the problem does not say. */
const usualPageSize = 16;

function formOfRows({ form, headsFirst }: StoredRows): StoredForm['queries'] {
  return form === 'padded' ? { kind: 'padded', headsFirst } : { kind: 'packed' };
}

/**
 * The form in which a problem with packed sequences was posed, without what no sequence uses; null where it was in
 * none: one sequence behind the other.
 */
export function formOf(problem: Problem): StoredForm | null {
  const stored = storedOf(problem);
  if (stored === null) return null;
  const { queries, keys, tensors } = stored;
  const ofQueries = formOfRows(queries);
  if (keys.form !== 'paged') return { queries: ofQueries, keys: formOfRows(keys) };
  return {
    queries: ofQueries,
    keys: {
      kind: 'paged',
      pageSize: keys.slotsPerGroup,
      headsFirst: keys.headsFirst,
      joined: tensors !== null && cacheName in tensors,
      listed: tensors !== null && 'paged_kv_indptr' in tensors,
    },
  };
}

/** Keys of a problem in pages. */
type PagedKeys = Extract<StoredForm['keys'], { readonly kind: 'paged' }>;

/** A form with its keys in pages: its own, or those of a kernel that takes pages. */
export function pagedForm(
  form: StoredForm | null,
  queries: StoredForm['queries']['kind'],
): StoredForm & { readonly keys: PagedKeys } {
  if (form !== null && form.keys.kind === 'paged') return { ...form, keys: form.keys };
  return {
    queries: form?.queries ?? { kind: queries },
    keys: { kind: 'paged', pageSize: usualPageSize },
  };
}

/** A problem in a form; one behind the other, or not packed, for null. */
export function posed(problem: Problem, form: StoredForm | null): Problem {
  return form === null || problem.sequences === undefined ? problem : storeProblem(problem, form);
}
