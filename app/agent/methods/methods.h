// Control methods by topic; each adds its own to the table. `control` outlives the table.
#pragma once

#include "app/agent/agent_control.h"
#include "app/agent/invite_look.h"
#include "app/agent/join_task.h"
#include "app/agent/method_table.h"
#include "net/check/check_task.h"

namespace atl {

void add_state_methods(MethodTable& table, AgentControl& control);            // state.get
void add_life_methods(MethodTable& table, AgentControl& control);             // pause, resume, finish, stop, leave
void add_gpu_methods(MethodTable& table, AgentControl& control);              // gpu.pause, gpu.resume
void add_join_methods(MethodTable& table, JoinTask& join, InviteLook& look);  // join, join.cancel, invite.look
void add_check_method(MethodTable& table, CheckTask& check);                  // check.run

void add_history_methods(MethodTable& table, AgentControl& control);  // rounds.list, peers.list, metrics.query
void add_file_methods(MethodTable& table, AgentControl& control);     // checkpoints.list, config.*, diag.create
void add_log_methods(MethodTable& table, AgentControl& control);      // logs.read

}  // namespace atl
