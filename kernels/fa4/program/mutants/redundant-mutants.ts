/** A mutant whose results are the program's in every schedule of the machine. */
export interface RedundantMutant {
  readonly id: string;
  /**
   * `implied`: what the instruction orders is ordered without it. `not modelled`: what it is there for
   * does not happen on the machine.
   */
  readonly because: 'implied' | 'not modelled';
  readonly reason: string;
}

/**
 * The mutants that no schedule shows, in any configuration. That a run of each is complete and free of
 * findings proves it for all schedules of its configuration (theorem in src/machine/ordering/
 * barrier-history.ts).
 */
export const redundantMutants: readonly RedundantMutant[] = [
  {
    id: 'remove: Q empty: load waits at its end',
    because: 'implied',
    reason:
      "the wait for the ring's last buffer comes after the last product with V, which the MMA warp issues after Q's last commit",
  },
  {
    id: 'remove: O stored: correction waits at its end',
    because: 'implied',
    reason: 'the epilogue warp of the same CTA arrives there itself before it ends',
  },
  {
    id: 'remove: Q taken: epilogue waits',
    because: 'implied',
    reason:
      "the epilogue's next wait is for a staged O, which needs the next Q, which is loaded after the load warp has taken note",
  },
  {
    id: 'early: statistics empty: correction releases sums, before row maxima: read',
    because: 'implied',
    reason:
      "the next maxima are stored at the end of a tile, after signals of the tile's first block that come after both reads",
  },
  {
    id: 'remove: tensor memory: no more allocations',
    because: 'implied',
    reason: 'no other CTA waits for tensor memory, and the CTA allocates once',
  },
  {
    id: 'remove: P: lanes joined',
    because: 'not modelled',
    reason: 'the lanes of a warp are converged at every instruction',
  },
];
