# Which tests scripts/sanitize runs with ThreadSanitizer: those of code that threads share have the label
# "threads". cmake/CheckThreads.cmake holds that every test that starts threads, or what has threads of
# its own, stands in one of the two lists. (Teams of threads compute in most tests: ops_team_test and the
# tests of the families are those of teams.)
set(INLAY_THREADS_TESTS
  base_wait_for_test
  cache_pool_property_test
  cache_token_list_test
  gemma_like_batch_test
  gemma_like_chat_renderer_test
  gemma_like_concurrency_test
  gemma_like_grammar_matcher_test
  gemma_like_inlay_c_calls_test
  gemma_like_ranks_test
  gemma_like_session_test
  io_template_jinja_test
  io_snapshot_folder_test
  ops_team_test
  serve_answer_log_test
  serve_answer_reply_test
  serve_answer_shapes_test
  serve_api_keys_test
  serve_batch_job_test
  serve_cut_answers_test
  serve_http_client_test
  serve_http_fault_test
  serve_http_random_test
  serve_http_refusal_test
  serve_http_server_test
  serve_http_stream_test
  serve_reply_queue_test
  serve_scheduler_property_test
  serve_scheduler_test
  serve_service_test
  serve_session_drain_test
  serve_session_probabilities_test
  serve_session_programs_test
  serve_session_replicas_test
  serve_session_routes_test
  serve_session_store_test
  serve_session_turn_test
  serve_shared_prefixes_test
  serve_store_thread_test
  serve_workers_test)

# Those that are left out, as expressions that the names of tests match in whole.
set(INLAY_THREADS_LEFT_OUT
  # To be tried: nobody has run them with ThreadSanitizer.
  io_state_store_test serve_access_log_test serve_operation_test serve_session_expiry_test
  serve_session_upkeep_test
  # Its limit leaves no addresses for the sanitizer's own memory.
  base_unwinding_memory_test
  # Threads that a callback ends, one at a time.
  gemma_like_inlay_c_callbacks_test
  # They take a model that embeds texts, of a config that the preset tsan has not.
  gemma_like_inlay_c_test serve_embeddings_test
  # The same ranks as in gemma_like_ranks_test.
  gemma_like_rank_files_test gemma_like_rank_rewind_test
  # libcurl, whose locks the sanitizer does not see.
  io_fetch_blob_test io_http_getter_test io_hub_reply_test io_pull_model_test
  # Stores on a Redis server, which have no threads of their own.
  io_redis_evil_server_test io_redis_memory_test io_redis_store_test io_snapshot_store_test
  # A thread that sends this process a signal.
  io_temporary_name_test
  # They compute much; their threads share only what is constant.
  io_tokenizer_golden_test ops_machine_limits_test
  # It measures memory, to which a sanitizer adds its own.
  serve_admission_test
  # A batcher, which has no threads, but for a scheduler in one place.
  serve_batcher_test
  # It replaces clock_gettime(), as the sanitizer does.
  serve_clock_step_test
  # Memory fails in one thread alone.
  serve_shared_prefixes_fault_test
  # Whole programs, whose rooms have tests of their own.
  tools_.*)
