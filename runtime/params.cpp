#include "params.h"

using namespace kvc;

kvc_status kvc_model_params_init_sized(kvc_model_params *params, size_t size) {
  return initSized(params, size, "params", "kvc_model_params");
}

kvc_status kvc_model_info_init_sized(kvc_model_info *info, size_t size) {
  return initSized(info, size, "info", "kvc_model_info");
}

kvc_status kvc_session_params_init_sized(kvc_session_params *params,
                                         size_t size) {
  return initSized(params, size, "params", "kvc_session_params");
}

kvc_status kvc_session_info_init_sized(kvc_session_info *info, size_t size) {
  return initSized(info, size, "info", "kvc_session_info");
}

kvc_status kvc_sequence_info_init_sized(kvc_sequence_info *info, size_t size) {
  return initSized(info, size, "info", "kvc_sequence_info");
}

kvc_status kvc_plan_info_init_sized(kvc_plan_info *info, size_t size) {
  return initSized(info, size, "info", "kvc_plan_info");
}

kvc_status kvc_sampler_params_init_sized(kvc_sampler_params *params,
                                         size_t size) {
  return initSized(params, size, "params", "kvc_sampler_params");
}
