export { diagnose } from './diagnose.js';
export { unexplained, type Diagnosis, type DiagnosisCandidate } from './diagnosis.js';
export type { DiagnosisInput } from './diagnosis.js';
