"""What this package uses of cassandra-driver, which has no types: the one place where it is imported."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, Final

import cassandra  # type: ignore[import-untyped]
from cassandra import auth, cluster, connection, policies, pool, protocol, query

VERSION: Final = str(cassandra.__version__)

ConsistencyLevel: Any = cassandra.ConsistencyLevel
AlreadyExists: Any = cassandra.AlreadyExists
AuthenticationFailed: Any = cassandra.AuthenticationFailed
DriverException: Any = cassandra.DriverException
InvalidRequest: Any = cassandra.InvalidRequest
OperationTimedOut: Any = cassandra.OperationTimedOut
Timeout: Any = cassandra.Timeout
Unauthorized: Any = cassandra.Unauthorized
Unavailable: Any = cassandra.Unavailable
UnresolvableContactPoints: Any = cassandra.UnresolvableContactPoints

PlainTextAuthProvider: Any = auth.PlainTextAuthProvider

EXEC_PROFILE_DEFAULT: Any = cluster.EXEC_PROFILE_DEFAULT
Cluster: Any = cluster.Cluster
DefaultConnection: Any = cluster.DefaultConnection
ExecutionProfile: Any = cluster.ExecutionProfile
NoHostAvailable: Any = cluster.NoHostAvailable
ResultSet: Any = cluster.ResultSet
Session: Any = cluster.Session

ConnectionException: Any = connection.ConnectionException
NoConnectionsAvailable: Any = pool.NoConnectionsAvailable

DCAwareRoundRobinPolicy: Any = policies.DCAwareRoundRobinPolicy
ExponentialReconnectionPolicy: Any = policies.ExponentialReconnectionPolicy
FallthroughRetryPolicy: Any = policies.FallthroughRetryPolicy

ConfigurationException: Any = protocol.ConfigurationException
ErrorMessage: Any = protocol.ErrorMessage
IsBootstrappingErrorMessage: Any = protocol.IsBootstrappingErrorMessage
OverloadedErrorMessage: Any = protocol.OverloadedErrorMessage
SyntaxException: Any = protocol.SyntaxException

BatchStatement: Any = query.BatchStatement
BatchType: Any = query.BatchType
SimpleStatement: Any = query.SimpleStatement
tuple_factory: Any = query.tuple_factory
