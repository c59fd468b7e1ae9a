/**
 * What a law throws on a problem of which it says nothing, such as that of grouped heads on one without:
 * such a problem does not count as tried, and another one is drawn in its place. The message says why,
 * in a clause.
 */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}
