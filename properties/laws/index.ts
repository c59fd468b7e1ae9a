import type { Law } from '../suite/law.js';
import { configurations } from './configurations.js';
import { convexity } from './convexity.js';
import { exact } from './exact.js';
import { exactExp2 } from './exact-exp2.js';
import { keyPermutation } from './key-permutation.js';
import { keySplitting } from './key-splitting.js';
import { lseMonotone } from './lse-monotone.js';
import { repeatedKeys } from './repeated-keys.js';
import { scoreShift } from './score-shift.js';
import { unbiased } from './unbiased.js';
import { weightsSumToOne } from './weights-sum-to-one.js';
import { causalIsWindow } from './causal-is-window.js';
import { decodeEqualsPrefill } from './decode-equals-prefill.js';
import { determinism } from './determinism.js';
import { emptyRows } from './empty-rows.js';
import { groupedHeads } from './grouped-heads.js';
import { headsIndependent } from './heads-independent.js';
import { maskedKeys } from './masked-keys.js';
import { nanContainment } from './nan-containment.js';
import { padding } from './padding.js';
import { queryOrder } from './query-order.js';
import { valueScaling } from './value-scaling.js';
import { maskedNanKeys, maskedNanValues } from './masked-nans.js';
import { withinBound } from './within-bound.js';

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
} satisfies Record<string, Law>;

/** The name of a law. */
export type LawId = keyof typeof laws;

/** Every law's name. */
export const lawIds = Object.keys(laws) as LawId[];
