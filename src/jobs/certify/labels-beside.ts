import type { FollowedRun } from './followed-run.js';

/**
 * The tensors of a launch that are neither rows of the problem nor outputs, as labels: whatever they are, they may reach all.
 *
 * @param ofContract the tensors that the contract names
 * @param firstTensor the label of the first tensor of the launch
 */
export function labelsBeside(
  { recorder, result }: FollowedRun,
  ofContract: readonly string[],
  firstTensor: number,
): readonly number[] {
  const guarded = new Set([...ofContract, ...result.outputs.map(({ name }) => name)]);
  return recorder.inputs.flatMap(({ tensor }, input) =>
    guarded.has(tensor) ? [] : [firstTensor + input],
  );
}
