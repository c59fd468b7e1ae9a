export { reachChainVerdict, type ChainEvidence, type ChainLinkVerdict } from './chain-verdict.js';
export { checkJoint, joints, type DumpedTensor, type Joint, type JointTensors } from './joints.js';
