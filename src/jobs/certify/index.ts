export type { ForbiddenReach, OutputReach } from '../../meaning/certify/index.js';
export type {
  AlgebraCertificate,
  Certificate,
  CertificateContract,
  CertificatePlace,
  CertificateStatus,
  CountedPlace,
  IdiomCertificate,
  OutputCertificate,
  OutputRounding,
  PartingPlaces,
  RoundingShare,
  SameCertificate,
  SameOutput,
  ScheduleCertificate,
} from './certificate.js';
export {
  certifyFollowed,
  certifyLaunch,
  type CertifiedLaunch,
  type CertifyRequest,
} from './certify-launch.js';
export { startFollowing } from './compiled-meaning.js';
export { type FollowedRun, followLaunch } from './followed-run.js';
export { groupPlaces, groupText, type PlaceGroup } from './place-groups.js';
