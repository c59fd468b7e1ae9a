import { exactExp2 } from './exact/exact-exp2.js';
import { exact } from './exact/exact.js';
import {
  gradientsAlone,
  gradientsDecode,
  gradientsGrouped,
  gradientsHeads,
  gradientsKeyPermutation,
  gradientsKeyShift,
} from './gradients/row-laws.js';
import { gradientsDeterminism, gradientsLinear, gradientsOfZero } from './gradients/dout-laws.js';
import { gradientsStoredOutput } from './gradients/stored-output.js';
import { gradientsConserved, gradientsWithinBound } from './gradients/sum-laws.js';
import {
  gradientsHiddenNan,
  gradientsNanRow,
  gradientsOfLevelValues,
  gradientsOfOneKey,
  gradientsOfUnseen,
} from './gradients/zero-laws.js';
import { groupedHeads, headsIndependent } from './head-laws.js';
import { maskedKeys, maskedNanKeys, maskedNanValues } from './hidden-key-laws.js';
import { keySplitting } from './key-splitting.js';
import type { Law } from './law.js';
import { lseMonotone, repeatedKeys, scoreShift } from './lse-laws.js';
import { means, sameExpression, unreached } from './served/meaning-laws.js';
import { causalIsWindow, emptyRows } from './mask-laws.js';
import { convexity, weightsSumToOne } from './mean-laws.js';
import { nanContainment } from './nan-containment.js';
import { determinism, keyPermutation, queryOrder } from './order-laws.js';
import { decodeEqualsPrefill, padding } from './padding-laws.js';
import { sequencesAlone } from './served/batch-laws.js';
import { maskTensors } from './served/mask-tensors.js';
import { neutralFeature } from './served/neutral-feature.js';
import { merging, splitCounts } from './served/split-laws.js';
import { storageForms, unusedStorage, unwrittenBuffers } from './served/storage-laws.js';
import { configurationsByTurns } from './turn-laws.js';
import { unbiased } from './unbiased.js';
import { valueScaling } from './value-scaling.js';
import { configurations, withinBound } from './within-bound.js';

export {
  isTensor,
  KernelAbsent,
  KernelFault,
  kernelGradients,
  kernelOutputs,
  sharedGradients,
  UnsupportedProblem,
  type AttentionKernel,
  type AttentionOutputs,
  type FollowedOutputs,
  type KernelResults,
  type MeaningClaim,
  type KernelConfiguration,
  type ResultMerger,
  type RunConditions,
  type StoredOutputs,
  type SplitRunner,
  type ProblemPromises,
  type ScoreLimit,
  type ValueFollower,
} from './kernel-under-test.js';
export {
  isGradientRun,
  NotApplicable,
  type GradientRun,
  type KernelRun,
  type Law,
  type LawCase,
  type LawStrength,
  type LawTools,
} from './law.js';
export { isSameResult } from './compare-runs.js';
export {
  composeSequences,
  packBatches,
  repeatedIndices,
  sequencesOf,
  wholePart,
  type SequencePart,
} from './served/sequence-problems.js';
export {
  arrangeProblem,
  arrangeResults,
  indices,
  permutation,
  type RowArrangement,
  type RunResults,
} from './transform-problem.js';
export {
  admittedFeatures,
  drawnAt,
  gradientsDrawnAt,
  isWithinScoreLimit,
  promisedConstraints,
} from './promised-problem.js';

/** Every law, by its id, in the order in which a suite tries them. */
export const laws = {
  'within-bound': withinBound,
  determinism,
  'heads-independent': headsIndependent,
  'query-order': queryOrder,
  'value-scaling': valueScaling,
  'masked-keys': maskedKeys,
  'masked-nan-keys': maskedNanKeys,
  'masked-nan-values': maskedNanValues,
  'nan-containment': nanContainment,
  'decode-equals-prefill': decodeEqualsPrefill,
  padding,
  'causal-is-window': causalIsWindow,
  'grouped-heads': groupedHeads,
  'empty-rows': emptyRows,
  'weights-sum-to-one': weightsSumToOne,
  convexity,
  'score-shift': scoreShift,
  'key-permutation': keyPermutation,
  'key-splitting': keySplitting,
  'repeated-keys': repeatedKeys,
  'lse-monotone': lseMonotone,
  configurations,
  unbiased,
  exact,
  'exact-exp2': exactExp2,
  'configurations-by-turns': configurationsByTurns,
  'sequences-alone': sequencesAlone,
  'storage-forms': storageForms,
  'unused-storage': unusedStorage,
  'unwritten-buffers': unwrittenBuffers,
  'split-counts': splitCounts,
  merging,
  'mask-tensors': maskTensors,
  'neutral-features': neutralFeature,
  means,
  unreached,
  'same-expression': sameExpression,
  'gradients-within-bound': gradientsWithinBound,
  'gradients-determinism': gradientsDeterminism,
  'gradients-conserved': gradientsConserved,
  'gradients-linear': gradientsLinear,
  'gradients-of-zero': gradientsOfZero,
  'gradients-of-level-values': gradientsOfLevelValues,
  'gradients-of-one-key': gradientsOfOneKey,
  'gradients-of-unseen': gradientsOfUnseen,
  'gradients-key-shift': gradientsKeyShift,
  'gradients-heads': gradientsHeads,
  'gradients-grouped': gradientsGrouped,
  'gradients-key-permutation': gradientsKeyPermutation,
  'gradients-alone': gradientsAlone,
  'gradients-decode': gradientsDecode,
  'gradients-nan-row': gradientsNanRow,
  'gradients-hidden-nan': gradientsHiddenNan,
  'gradients-stored-output': gradientsStoredOutput,
} satisfies Record<string, Law>;

/** The name of a law. */
export type LawId = keyof typeof laws;

/** Every law's name. */
export const lawIds = Object.keys(laws) as LawId[];
