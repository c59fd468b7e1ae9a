/** Number of rows of a head that a fault could be in unseen, and how many of them are judged: drawn at random. */
export interface RandomRows {
  readonly drawn: number;
  readonly among: number;
}

/** A kind of fault, by the rows it is in, and the probability that one of them is judged. */
export interface FaultOdds {
  /** "0.1 % of the rows". */
  readonly fault: string;
  readonly rows: number;
  /** A lower bound of that probability; exact for a fault that is in none of the rows that are chosen for their place. */
  readonly seen: number;
}

/**
 * The probability that none of `faulty` rows is among those drawn: hypergeometric,
 * Π (among − drawn − j) / (among − j).
 */
function missProbability({ drawn, among }: RandomRows, faulty: number): number {
  if (faulty > among - drawn) return 0;
  // By whichever of the two has fewer factors.
  const [factors, other] = faulty < drawn ? [faulty, drawn] : [drawn, faulty];
  let logarithm = 0;
  for (let j = 0; j < factors; j++) logarithm += Math.log1p(-other / (among - j));
  return Math.exp(logarithm);
}

/**
 * The probability that none of `faulty` rows is judged, wherever they are in some heads. Spread evenly over the heads
 * they hide best: each further row of a head is seen more probably than the one before.
 * @param head the random rows of each head
 */
function mostProbableMiss(head: RandomRows, heads: number, faulty: number): number {
  const each = Math.floor(faulty / heads);
  const more = faulty - each * heads;
  return missProbability(head, each) ** (heads - more) * missProbability(head, each + 1) ** more;
}

/** The part of the rows that reports speak of. */
const sharesOfRows = [0.001, 0.01] as const;

/** Rows of a tile of queries. */
const tileRows = 128;

/**
 * The probabilities that faults of some sizes are seen: in a part of all rows, in a tile of 128 queries of one
 * head, in one row, in a head. Each probability holds for the rows where the fault is hardest to see.
 * @param ofHeads the random rows of each head
 * @param queries number of rows of each head
 */
export function faultOdds(ofHeads: readonly RandomRows[], queries: number): FaultOdds[] {
  const heads = ofHeads.length;
  // No head hides more than one with the fewest rows drawn among the most.
  const head = {
    drawn: ofHeads.reduce((least, { drawn }) => Math.min(least, drawn), Infinity),
    among: ofHeads.reduce((most, { among }) => Math.max(most, among), 0),
  };
  const ofOneHead = (fault: string, rows: number) => ({
    fault,
    rows,
    seen: 1 - missProbability(head, rows),
  });
  const parts = sharesOfRows.map((share) => {
    const rows = Math.max(1, Math.round(share * heads * queries));
    const seen = 1 - mostProbableMiss(head, heads, rows);
    return { fault: `${share * 100} % of the rows`, rows, seen };
  });
  const tile = Math.min(tileRows, queries);
  return [
    ...parts,
    ofOneHead(`${tile} rows of one head`, tile),
    ofOneHead('one row', 1),
    ofOneHead('a whole head', queries),
  ];
}
